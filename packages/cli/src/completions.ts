/**
 * What the library's completion scripts leave out: the shells of `--completions`, and in bash files where no word fits.
 */

const shells = "bash zsh fish"

/** The script of whichever shell it is for, with what it lacks. */
export const wholeCompletions = (script: string): string =>
  script.startsWith("#compdef")
    ? zshScript(script)
    : script.includes("\ncomplete -c ")
      ? `${script.trimEnd()}\ncomplete -c tropism -n '__fish_use_subcommand' -l completions -d 'Print completions' -x -a '${shells}'\n`
      : bashScript(script)

const zshScript = (script: string): string =>
  script.replace("'1:command:->command'", `'--completions[Print completions]:shell:(${shells})'\n    $&`)

/** Where a command has no word of its own to offer, bash offers files, as it does without completions. */
const bashScript = (script: string): string =>
  script.replace(
    /^complete -F _tropism tropism$/m,
    `_tropism_or_shells()
{
  if [[ "\${COMP_WORDS[COMP_CWORD-1]}" == --completions ]]; then
    COMPREPLY=($(compgen -W "${shells}" -- "\${COMP_WORDS[COMP_CWORD]}"))
  else
    _tropism "$@"
  fi
}
complete -o bashdefault -o default -F _tropism_or_shells tropism`
  )
