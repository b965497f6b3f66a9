# fish completion for connectctl: connectctl completion fish | source
function __connectctl_candidates
    env _CONNECTCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS=(commandline -cp) connectctl 2>/dev/null
end
complete --command connectctl --arguments "(__connectctl_candidates)"
