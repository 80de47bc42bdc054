//! Completion of names that come and go: what is added to the scripts that are generated.

use clap_complete::Shell;

/// The script with a question for names in it. Shells without one keep the script as it is.
pub(crate) fn added(shell: Shell, script: String) -> String {
    if shell == Shell::Bash {
        script + BASH
    } else if shell == Shell::Fish {
        script + FISH
    } else if shell == Shell::Zsh {
        // Zsh calls the function that has the name of the file; so that name is taken over.
        script.replacen("\n_cofferdam() {", &format!("\n{ZSH}\n_cofferdam_words() {{"), 1)
    } else {
        script
    }
}

const BASH: &str = r#"
_cofferdam_names() {
    local names last piece rest line="$COMP_LINE" words=() i
    # Bash parts words at a colon. What no blank parts in the line is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece="${COMP_WORDS[i]}"
        rest="${line#"${line%%[![:blank:]]*}"}"
        if [[ $i -gt 0 && -n "$rest" && "$rest" == "$line" ]]; then
            words[${#words[@]} - 1]+="$piece"
        else
            words+=("$piece")
        fi
        line="${rest#"$piece"}"
    done
    last="${words[${#words[@]} - 1]}"
    names="$("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)"
    if [[ -n "$names" ]]; then
        COMPREPLY=($(compgen -W "$names" -- "$last"))
        # What stands before the last colon stays, and is not written again.
        [[ "$piece" == ":" ]] && piece=""
        COMPREPLY=("${COMPREPLY[@]#"${last%"$piece"}"}")
        return 0
    fi
    _cofferdam "$@"
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _cofferdam_names -o nosort -o bashdefault -o default cofferdam
else
    complete -F _cofferdam_names -o bashdefault -o default cofferdam
fi
"#;

const ZSH: &str = r#"_cofferdam() {
    local -a names
    names=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    if (( ${#names} )); then
        compadd -- "${names[@]}"
        return
    fi
    _cofferdam_words "$@"
}
"#;

const FISH: &str = r#"
function __cofferdam_names
    set -l words (commandline -opc) (commandline -ct)
    set -l names (command cofferdam __complete -- $words[2..-1] 2>/dev/null)
    test (count $names) -gt 0; and printf '%s\n' $names
end
complete -c cofferdam -n '__cofferdam_names >/dev/null' -f -a '(__cofferdam_names)'
"#;
