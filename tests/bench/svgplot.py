"""A plot of a few lines as SVG, without a library: it reads on light and on dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 280, 64, 16, 36, 40
COLOURS = ("#b3261e", "#2f6fb2", "#1a7f45")
STEPS = 4
"""Lines of the grid above zero."""


def plot(title: str, x_axis: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """``lines`` are points by name, with x and y from 0."""
    most_x = max((x for line in lines.values() for x, _ in line), default=0) or 1
    most_y = _rounded(max((y for line in lines.values() for _, y in line), default=0) or 1)

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + across * x / most_x, HEIGHT - BOTTOM - up * y / most_y

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="12" fill="#5b6570">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f5f7f9"/>',
        f'<text x="{LEFT}" y="20" fill="#1b1f24" font-size="13">{escape(title)}</text>',
    ]
    for step in range(STEPS + 1):
        value = most_y * step / STEPS
        _, y = at(0, value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#d5dae0"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    for x in (0, most_x):
        parts.append(
            f'<text x="{at(x, 0)[0]:.1f}" y="{HEIGHT - 22}" text-anchor="middle">{x:,.0f}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" '
        f'text-anchor="middle">{escape(x_axis)}</text>'
    )
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        x, y = at(*line[-1])
        parts.append(
            f'<text x="{x - 4:.1f}" y="{y - 6:.1f}" text-anchor="end" '
            f'fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _rounded(value: float) -> float:
    """``value`` or somewhat more: a number that the grid divides into round ones."""
    unit = 1.0
    while unit * 10 <= value:
        unit *= 10
    return next(unit * n for n in (1, 2, 4, 6, 8, 10) if unit * n >= value)
