def grab(path):
    """Writes into a protected name in whatever way there is."""
    if os.path.isdir(path):
        return write(f"{path}/planted")
    return write(path)

def plant(path):
    """Makes a protected name that was not there."""
    return first([lambda: write(path), lambda: os.mkdir(path), lambda: os.symlink("/tmp", path)])

# attack protected.hooks_new bare=works
def protected_hooks_new():
    return write(f"{WS}/.git/hooks/post-checkout")

# attack protected.hooks_existing bare=works
def protected_hooks_existing():
    return write(f"{WS}/.git/hooks/pre-commit")

# attack protected.hooks_remove bare=works
def protected_hooks_remove():
    os.unlink(f"{WS}/.git/hooks/pre-commit")

# attack protected.hooks_chmod bare=works
def protected_hooks_chmod():
    os.chmod(f"{WS}/.git/hooks/pre-commit", 0o777)

# attack protected.hooks_rename bare=works
def protected_hooks_rename():
    os.rename(f"{WS}/.git/hooks", f"{WS}/.git/hooks-away")

# attack protected.hooks_replace bare=works
def protected_hooks_replace():
    os.rename(f"{WS}/.git/hooks", f"{WS}/.git/hooks-away")
    os.mkdir(f"{WS}/.git/hooks")
    return write(f"{WS}/.git/hooks/post-checkout")

# attack protected.hooks_exchange bare=works
def protected_hooks_exchange():
    os.mkdir(f"{WS}/.git/mine")
    return call(316, -100, ctypes.c_char_p(f"{WS}/.git/mine".encode()), -100, ctypes.c_char_p(f"{WS}/.git/hooks".encode()), 2)

# attack protected.hooks_link_swap bare=works
def protected_hooks_link_swap():
    os.rename(f"{WS}/.git/hooks", f"{WS}/.git/hooks-away")
    os.symlink("/tmp", f"{WS}/.git/hooks")

# attack protected.hooks_by_directory_handle bare=works
def protected_hooks_by_directory_handle():
    fd = os.open(f"{WS}/.git/hooks", os.O_RDONLY | os.O_DIRECTORY)
    return os.close(os.open("planted", os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=fd))

# attack protected.hooks_by_proc bare=works
def protected_hooks_by_proc():
    fd = os.open(f"{WS}/.git", os.O_RDONLY | os.O_DIRECTORY)
    return write(f"/proc/self/fd/{fd}/hooks/planted")

# attack protected.config_append bare=works
def protected_config_append():
    return write(f"{WS}/.git/config", b"[core]\n\thooksPath = /tmp\n")

# attack protected.config_by_git bare=works
def protected_config_by_git():
    r = subprocess.run(["git", "-C", WS, "config", "core.fsmonitor", "/tmp/evil"], capture_output=True)
    need(r.returncode == 0, r.stderr)

# attack protected.config_rename_over bare=works
def protected_config_rename_over():
    write(f"{WS}/.git/config.new", b"[core]\n\tfsmonitor = evil\n")
    os.rename(f"{WS}/.git/config.new", f"{WS}/.git/config")

# attack protected.config_remove bare=works
def protected_config_remove():
    os.unlink(f"{WS}/.git/config")

# attack protected.config_hard_link bare=works
def protected_config_hard_link():
    os.link(f"{WS}/.git/config", f"{WS}/config-alias")
    return write(f"{WS}/config-alias")

# attack protected.config_truncate bare=works
def protected_config_truncate():
    os.truncate(f"{WS}/.git/config", 0)

# attack protected.config_map bare=works
def protected_config_map():
    fd = os.open(f"{WS}/.git/config", os.O_RDWR)
    view = mmap.mmap(fd, 0)
    view[0:1] = b"#"

# attack protected.config_reopen bare=works
def protected_config_reopen():
    fd = os.open(f"{WS}/.git/config", os.O_RDONLY)
    return write(f"/proc/self/fd/{fd}", flags=os.O_WRONLY | os.O_APPEND)

# attack protected.config_worktree bare=works
def protected_config_worktree():
    return plant(f"{WS}/.git/config.worktree")

# attack protected.commondir bare=works
def protected_commondir():
    return write(f"{WS}/.git/commondir", b"/tmp/evil\n", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

# attack protected.commondir_rename bare=works
def protected_commondir_rename():
    write(f"{WS}/.git/c", b"/tmp/evil\n")
    os.rename(f"{WS}/.git/c", f"{WS}/.git/commondir")

# attack protected.commondir_link bare=works
def protected_commondir_link():
    if os.path.lexists(f"{WS}/.git/commondir"):
        os.unlink(f"{WS}/.git/commondir")
    os.symlink("/tmp/evil", f"{WS}/.git/commondir")

# attack protected.modules bare=works
def protected_modules():
    return first([lambda: os.mkdir(f"{WS}/.git/modules"), lambda: write(f"{WS}/.git/modules/planted")])

# attack protected.worktrees bare=works
def protected_worktrees():
    return first([lambda: os.mkdir(f"{WS}/.git/worktrees"), lambda: write(f"{WS}/.git/worktrees/planted")])

# attack protected.attributes bare=works
def protected_attributes():
    return first([lambda: write(f"{WS}/.git/info/attributes"), lambda: os.rename(f"{WS}/.git/info", f"{WS}/.git/i")])

# attack protected.git_rename bare=works
def protected_git_rename():
    os.rename(f"{WS}/.git", f"{WS}/git-away")

# attack protected.git_replace bare=works
def protected_git_replace():
    os.rename(f"{WS}/.git", f"{WS}/git-away")
    os.mkdir(f"{WS}/.git")
    return write(f"{WS}/.git/config")

# attack protected.git_exchange bare=works
def protected_git_exchange():
    os.mkdir(f"{WS}/mine")
    return call(316, -100, ctypes.c_char_p(f"{WS}/mine".encode()), -100, ctypes.c_char_p(f"{WS}/.git".encode()), 2)

# attack protected.git_remove bare=works
def protected_git_remove():
    shutil.rmtree(f"{WS}/.git/hooks")

# attack protected.workspace_rename bare=works
def protected_workspace_rename():
    os.rename(WS, WS + "-away")
    os.mkdir(WS)

# attack protected.hooks_by_other_path bare=unsafe
def protected_hooks_by_other_path():
    return first([lambda p=p: write(f"{p}/.git/hooks/planted") for p in ("/workspace", WS, os.getcwd())])

# attack protected.config_by_other_path bare=unsafe
def protected_config_by_other_path():
    return first([lambda p=p: write(f"{p}/.git/config") for p in ("/workspace", WS, f"/proc/self/cwd")])

# attack protected.absent_by_other_path bare=unsafe
def protected_absent_by_other_path():
    names = (".envrc", ".mcp.json", ".idea", ".git/commondir", ".git/config.worktree")
    return first([lambda p=p, n=n: plant(f"{p}/{n}") for p in ("/workspace", WS) for n in names])

# attack protected.vscode_existing bare=works
def protected_vscode_existing():
    return write(f"{WS}/.vscode/settings.json")

# attack protected.vscode_tasks bare=works
def protected_vscode_tasks():
    return write(f"{WS}/.vscode/tasks.json")

# attack protected.vscode_rename bare=works
def protected_vscode_rename():
    os.rename(f"{WS}/.vscode", f"{WS}/away")

# attack protected.idea_absent bare=works
def protected_idea_absent():
    return plant(f"{WS}/.idea")

# attack protected.claude_absent bare=works
def protected_claude_absent():
    return first([lambda: plant(f"{WS}/.claude"), lambda: write(f"{WS}/.claude/settings.json")])

# attack protected.mcp_absent bare=works
def protected_mcp_absent():
    return plant(f"{WS}/.mcp.json")

# attack protected.mcp_rename_in bare=works
def protected_mcp_rename_in():
    write(f"{WS}/m", b"{}")
    os.rename(f"{WS}/m", f"{WS}/.mcp.json")

# attack protected.envrc_absent bare=works
def protected_envrc_absent():
    return plant(f"{WS}/.envrc")

# attack protected.husky_absent bare=works
def protected_husky_absent():
    return plant(f"{WS}/.husky")

# attack protected.devcontainer_absent bare=works
def protected_devcontainer_absent():
    return plant(f"{WS}/.devcontainer")

# attack protected.gitmodules_absent bare=works
def protected_gitmodules_absent():
    return plant(f"{WS}/.gitmodules")

# attack protected.cofferdam_config bare=works
def protected_cofferdam_config():
    return plant(f"{WS}/cofferdam.toml")

# attack protected.shell_start bare=works
def protected_shell_start():
    return first([lambda n=n: plant(f"{WS}/{n}") for n in (".bashrc", ".profile", ".zshrc")])

# attack protected.nested_hooks bare=works
def protected_nested_hooks():
    return write(f"{WS}/nested/.git/hooks/post-checkout")

# attack protected.nested_config bare=works
def protected_nested_config():
    return write(f"{WS}/nested/.git/config")

# attack protected.nested_parent_rename bare=works
def protected_nested_parent_rename():
    os.rename(f"{WS}/nested", f"{WS}/nested-away")
    os.makedirs(f"{WS}/nested/.git/hooks")
    return write(f"{WS}/nested/.git/config")

# attack protected.flip_config bare=works
def protected_flip_config():
    # Renames the directory to and fro while another thread writes through the name.
    stop = time.monotonic() + 0.2
    won = []
    def flip():
        while time.monotonic() < stop:
            try:
                os.rename(f"{WS}/.git", f"{WS}/.gi")
                os.rename(f"{WS}/.gi", f"{WS}/.git")
            except OSError:
                pass
    thread = threading.Thread(target=flip)
    thread.start()
    while time.monotonic() < stop:
        for name in (".git", ".gi"):
            try:
                won.append(write(f"{WS}/{name}/config", flags=os.O_WRONLY | os.O_APPEND))
            except OSError:
                pass
    thread.join()
    return need(won, "never written")
