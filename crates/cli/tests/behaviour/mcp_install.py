# The scene of `mcp install`. `screen.py` stands before this.

def asked():
    screen = Screen([PROGRAM, "mcp", "install", "claude"])
    screen.expect(r"\+    \"cofferdam\": \{")
    screen.expect(r"\[y/N\] ")
    screen.type(sys.argv[3] + "\n")
    screen.expect("wrote " if sys.argv[3] == "y" else "nothing was written")
    screen.ends(0)


globals()[SCENE]()
