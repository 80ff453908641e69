# Source me: `pause SECONDS` waits without starting a process, for loops that look again and again.
exec {never}<> <(:)
pause() {
    read -rt "$1" -u "$never"
}
