// Stands for zod/v4/core in the declarations of the client library.
export type $strict = unknown;
