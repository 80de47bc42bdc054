# Runs the commands of a shell session, one frame a line: "SEQ MODE LENGTH TEXT", the text with
# whatever is not plain in octal. Commands never see descriptors 3 (frames), 4 (statuses) and 5 (the
# marks between outputs). A frame that was cut off, or that came twice, is left out.
exec 3<&0 4>&2 5>&1 2>&1 </dev/null
__cofferdam_key=$1
__cofferdam_in=$HOME/$2
shift "$#"
rm -f "$__cofferdam_in"
mkfifo -m 600 "$__cofferdam_in" || exit 125
__cofferdam_last=0
__cofferdam_nl='
'
# What stands for busy is set only where there is a function to return from: elsewhere a return would
# end the shell.
__cofferdam_busy=
__cofferdam_run() {
  __cofferdam_busy=1
  command eval "$__cofferdam_text"
  set -- "$?"
  __cofferdam_busy=
  return "$1"
}
# A signal ends the command, be it a loop of this very shell, and not the shell.
trap '[ -z "$__cofferdam_busy" ] || { __cofferdam_busy=; return 130; }' INT
while IFS=' ' read -r __cofferdam_seq __cofferdam_mode __cofferdam_len __cofferdam_line <&3; do
  [ "${#__cofferdam_line}" = "$__cofferdam_len" ] || continue
  [ "$__cofferdam_seq" -gt "$__cofferdam_last" ] || continue
  __cofferdam_last=$__cofferdam_seq
  # Where it begins. A name with a line end in it would be two words.
  case ${PWD-} in
    *"$__cofferdam_nl"*) ;;
    *) printf 'D %s %s\n' "$__cofferdam_seq" "${PWD-}" >&4 ;;
  esac
  printf 'B %s\n' "$__cofferdam_seq" >&4
  # A signal that comes meanwhile ends the printf: then nothing of the command may run.
  if __cofferdam_text=$(printf '%bx' "$__cofferdam_line"); then
    __cofferdam_text=${__cofferdam_text%x}
    case $__cofferdam_mode in
      i) __cofferdam_run 3<&- 4>&- 5>&- <>"$__cofferdam_in" ;;
      *) __cofferdam_run 3<&- 4>&- 5>&- </dev/null ;;
    esac
    __cofferdam_code=$?
    __cofferdam_busy=
  else
    __cofferdam_code=130
  fi
  printf '\036%s %s\036' "$__cofferdam_key" "$__cofferdam_seq" >&5
  printf 'E %s %s\n' "$__cofferdam_seq" "$__cofferdam_code" >&4
done
