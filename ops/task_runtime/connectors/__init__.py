"""The connectors that come with connectctl; each goes on where Connect's own connector of that kind stopped."""
