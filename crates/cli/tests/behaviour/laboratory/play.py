# Plays one scene in a laboratory: SCENE PROGRAM BASE. A scene fails by an exception.
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attacks, gates, tools
from lab import Lab

SCENE, PROGRAM, BASE = sys.argv[1:4]


SCENES = {
    "apart": gates.apart,
    "proxy": gates.proxy,
    "attacks": attacks.scene,
    "fetching": tools.scene(tools.FETCHING),
    "packages": tools.scene(tools.PACKAGES),
    "languages": tools.scene(tools.LANGUAGES),
    "proxied": tools.scene(tools.PROXIED),
}
TRIED = ("fetching", "packages", "languages", "proxied")


def built():
    """The laboratory, or nothing where this machine does not let one be made: that is said, and looked for."""
    laboratory = Lab(BASE, PROGRAM)
    if SCENE in TRIED:
        tools.prepare(laboratory)
    try:
        return laboratory.start()
    except (OSError, AssertionError) as error:
        laboratory.end()
        print("skipped: laboratory:", " ".join(str(error).split())[:300])
        return None


laboratory = built()
if laboratory:
    try:
        SCENES[SCENE](laboratory)
    finally:
        laboratory.end()
