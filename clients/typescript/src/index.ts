/** A client of Cofferdam, which runs commands nobody has read in sandboxes. */

export { Client } from "./client.js";
export { CofferdamError, CommandFailed, type ErrorKind } from "./errors.js";
export { Exec, type Until } from "./execs.js";
export { type FileData, Files, type WatchOptions, type WriteOptions } from "./files.js";
export { Network, Ports } from "./network.js";
export { Sandbox } from "./sandbox.js";
export type { components, operations, paths } from "./schema.js";
export { Shell } from "./shells.js";
export { Snapshots } from "./snapshots.js";
export {
  type Command,
  type ExecOptions,
  type FilePath,
  type Once,
  type Output,
  Ran,
  type RunOptions,
  type SandboxOptions,
  type Schemas,
  type StreamName,
} from "./values.js";
export type { ClientOptions } from "./wire.js";
