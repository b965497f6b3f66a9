"""The style sheet of pages, for light and dark mode, telephones and paper.

Pages have no ``style`` attributes, so that the content security policy can allow only this sheet, by its hash.
"""

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--line:#d5dae0;--back:#fff;--card:#f5f7f9;--link:#0b5cad;
--good:#17703c;--bad:#b3261e;--doubt:#825500;--info:#0b5cad;--bar:#2f6fb2;
--committed:#2f6fb2;--aborted:#b57700;--gaps:#b3261e;--duplicates:#7b3fa0;--torn:#00706b}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9fa9b4;--line:#38414a;--back:#14181c;
--card:#1b2127;--link:#7ab7ff;--good:#5cc98a;--bad:#ff8a80;--doubt:#e5b454;--info:#7ab7ff;--bar:#6ea8e6;
--committed:#6ea8e6;--aborted:#e5b454;--gaps:#ff8a80;--duplicates:#cfa0ee;--torn:#5fd0c8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:.5rem}
body{margin:0 auto;max-width:76rem;padding:1.5rem 1rem 3rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);
background:var(--back)}
p,dd,li,h1,h3,caption,summary,.code,.long,.command{overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.3;margin:0}
h2{font-size:1.1rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:.95rem;margin:1.2rem 0 .3rem}
p{margin:.3rem 0;max-width:80ch}
a{color:var(--link)}
a:focus-visible,summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
code,.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}
.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.doubt{color:var(--doubt)}
.verdict{margin:.5rem 0 0;font-size:1.5rem;line-height:1.3;font-weight:600}
.verdict small{display:block;font-size:.95rem;font-weight:400;color:var(--ink)}
nav ul{list-style:none;margin:.8rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.9rem}
dl{display:grid;grid-template-columns:minmax(7rem,11rem) 1fr;gap:.15rem 1rem;margin:1rem 0 0;font-size:.92rem}
dt{color:var(--dim)}dd{margin:0;min-width:0}
.command{display:block;background:var(--card);border:1px solid var(--line);border-radius:4px;padding:.3rem .5rem;
font-size:.84em}.command span{display:inline-block;max-width:100%}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.88rem}
caption{text-align:left;color:var(--dim);padding:.1rem 0 .3rem}
th,td{text-align:left;vertical-align:top;padding:.25rem 1rem .25rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:500}thead th{white-space:nowrap}
tbody th{color:inherit}.cards tbody th{font-weight:600}th .dim{font-weight:400}.code code{font-size:1em}
.n{text-align:right;white-space:nowrap}.nowrap,td summary,td a{white-space:nowrap}
.code{min-width:10rem}.long{min-width:16rem}
.bar{width:45%;min-width:6rem}.bar svg{display:block;width:100%;height:.9rem;margin-top:.2rem;fill:var(--bar)}
.findings{list-style:none;margin:0;padding:0}
.findings li{border-left:4px solid var(--line);padding:.1rem 0 .1rem .8rem;margin:.5rem 0}
.findings .error{border-color:var(--bad)}.findings .warning{border-color:var(--doubt)}
.findings .info{border-color:var(--info)}
.findings b{font-weight:600}.error b{color:var(--bad)}.warning b{color:var(--doubt)}.info b{color:var(--info)}
.findings p{margin:0}.findings p+p{margin-top:.15rem}.next{color:var(--dim)}
summary{cursor:pointer;padding:.2rem 0}
details{margin:.3rem 0}td details{margin:0}td summary{padding:0;color:var(--link)}
td ul{margin:.2rem 0 .4rem;padding-left:1.1rem}
.story p{max-width:75ch}
figure{margin:.9rem 0 0}
figcaption{font-size:.9rem}figcaption i{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.4rem}
.axes{display:grid;grid-template-columns:3.6rem 1fr;font-size:.75rem;color:var(--dim);font-variant-numeric:tabular-nums}
.axes svg{display:block;width:100%;height:72px;background:var(--card);grid-column:2;grid-row:1}
.axes rect{shape-rendering:crispEdges}
.axes svg path{stroke:var(--line);vector-effect:non-scaling-stroke}
.y{grid-column:1;grid-row:1;display:flex;flex-direction:column;justify-content:space-between;text-align:right;
padding-right:.5rem;line-height:1}
.x{grid-column:2;display:flex;justify-content:space-between;gap:.8rem;padding-top:.2rem;line-height:1.25}
.x :nth-child(2){text-align:center}.x :last-child{text-align:right}
svg .committed{fill:var(--committed)}svg .aborted{fill:var(--aborted)}svg .gaps{fill:var(--gaps)}
svg .duplicates{fill:var(--duplicates)}svg .torn{fill:var(--torn)}
i.committed{background:var(--committed)}i.aborted{background:var(--aborted)}i.gaps{background:var(--gaps)}
i.duplicates{background:var(--duplicates)}i.torn{background:var(--torn)}
@media(max-width:46rem){
body{padding:1rem .8rem 2rem}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}
.cards,.cards tbody,.cards tr,.cards td,.cards th,.cards caption{display:block}
.cards thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.cards tr{border-bottom:1px solid var(--line);padding:.4rem 0}
.cards td,.cards tbody th{border:0;padding:.05rem 0;display:grid;grid-template-columns:7.5rem minmax(0,1fr);gap:.6rem;
text-align:left;white-space:normal;min-width:0;width:auto;overflow-wrap:anywhere}
.cards td::before,.cards tbody th::before{content:attr(data-label);color:var(--dim);font:400 .88rem/1.5 system-ui,sans-serif}
.cards td:empty{display:none}
.small td,.small th{padding-right:.7rem}.long{min-width:0}.axes{grid-template-columns:2.8rem 1fr}
}
@media print{
body{max-width:none;padding:0;font-size:9.5pt}nav{display:none}a{color:inherit;text-decoration:none}
h2,h3,figcaption{break-after:avoid}figure,.findings li,tr{break-inside:avoid}
details::details-content{content-visibility:visible;display:block;height:auto}
.axes svg,.bar svg,i{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""
