//! A real build, on the host and in a sandbox.

use super::Outcome;
use super::measure::{Plan, Results, Row, Value};
use super::programs::Ground;
use super::rows::run;
use super::spawner::Spawner;
use std::fmt::Write;
use std::path::Path;

/// The build on the host.
pub(super) const BUILD_HOST: &str = "build-host";
/// The same build in a sandbox.
pub(super) const BUILD_INSIDE: &str = "build-inside";

/// Source files, and functions in each: some seconds of work with many small files and processes.
const FILES: usize = 16;
const FUNCTIONS: usize = 150;

/// Times the build as every person, host and sandbox in turn.
pub(super) fn measure(
    plan: &Plan,
    ground: &Ground,
    spawners: &mut [Spawner],
    results: &mut Results,
    notes: &mut Vec<String>,
) -> Outcome<()> {
    for spawner in spawners {
        write_project(Path::new(&spawner.workspace))?;
        let outside = vec!["sh".to_owned(), "./build".to_owned()];
        let inside = run(ground, &outside);
        if spawner.time(&outside).is_err() {
            notes.push("No C compiler: the rows of a real build are missing.".to_owned());
            return Ok(());
        }
        let (mut host, mut sandbox) = (Vec::new(), Vec::new());
        for _ in 0..plan.builds {
            host.push(spawner.time(&outside)?.ns);
            sandbox.push(spawner.time(&inside)?.ns);
        }
        let rows = [
            (BUILD_HOST, "a C project built on the host", host),
            (BUILD_INSIDE, "the same built by `cofferdam run`", sandbox),
        ];
        for (id, what, samples) in rows {
            results.add(Row {
                id: id.to_owned(),
                who: spawner.who.to_owned(),
                what: what.to_owned(),
                base: Some(BUILD_HOST.to_owned()),
                value: Value::times(samples),
            });
        }
    }
    Ok(())
}

/// The build starts from nothing each time. Objects are removed first, since whoever built last,
/// host or sandbox, must leave nothing that the next could use.
const BUILD: &str = "set -e
rm -rf out
mkdir out
for file in src/*.c; do
  name=${file#src/}
  cc -O2 -Isrc -c \"$file\" -o \"out/${name%.c}.o\"
done
cc -o out/program out/*.o
./out/program
";

fn write_project(workspace: &Path) -> Outcome<()> {
    let source = workspace.join("src");
    let wrong = |error: std::io::Error| format!("write a project to {}: {error}", source.display());
    std::fs::create_dir_all(&source).map_err(wrong)?;
    std::fs::write(workspace.join("build"), BUILD).map_err(wrong)?;
    let mut header = String::new();
    let mut calls = String::new();
    for file in 0..FILES {
        let _ = writeln!(header, "long part{file}(long);");
        let _ = writeln!(calls, "  sum += part{file}(sum);");
        std::fs::write(source.join(format!("part{file}.c")), part(file)).map_err(wrong)?;
    }
    std::fs::write(source.join("parts.h"), header).map_err(wrong)?;
    let main = format!(
        "#include \"parts.h\"\nint main(void) {{\n  long sum = 1;\n{calls}  return sum == 42;\n}}\n"
    );
    std::fs::write(source.join("main.c"), main).map_err(wrong)
}

fn part(file: usize) -> String {
    let mut text =
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"parts.h\"\n"
            .to_owned();
    for function in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "static long f{function}(long x) {{ for (long i = 0; i < x % {}; i++) x = x * 31 + (i ^ {function}); return x; }}",
            function + 3,
        );
    }
    let _ = writeln!(text, "long part{file}(long x) {{");
    for function in 0..FUNCTIONS {
        let _ = writeln!(text, "  x += f{function}(x);");
    }
    text.push_str("  return x;\n}\n");
    text
}
