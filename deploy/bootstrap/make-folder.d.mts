/**
 * Makes a folder and those above it that are missing. Not `mkdir` with `recursive`, which on Node 22 never returns below
 * /proc or /sys. Throws system errors such as EACCES.
 */
export declare function makeFolder(path: string, mode?: number): void;
