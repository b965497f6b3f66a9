"""The connectors that come with connectctl; each resumes where Connect's own connector of that kind
stopped.
"""
