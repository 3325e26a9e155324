// Stands for zod in the declarations of the client library, so that a program needs no further package for its types. A schema has an
// input type and an output type. The release fails if the library uses a type of zod that is missing here.
export interface Schema<Input, Output = Input> {
  readonly input: Input;
  readonly output: Output;
}
type AnySchema = Schema<unknown>;

export type input<S extends AnySchema> = S['input'];
export type output<S extends AnySchema> = S['output'];
export type { output as infer };

export type ZodString = Schema<string>;
export type ZodNumber = Schema<number>;
export type ZodInt = Schema<number>;
export type ZodBoolean = Schema<boolean>;
export type ZodUnknown = Schema<unknown>;
export type ZodLiteral<T> = Schema<T>;
export type ZodEnum<T> = Schema<T[keyof T]>;
export type ZodOptional<S extends AnySchema> = Schema<S['input'] | undefined, S['output'] | undefined>;
export type ZodDefault<S extends AnySchema> = Schema<S['input'] | undefined, S['output']>;
export type ZodUnion<S extends readonly AnySchema[]> = Schema<S[number]['input'], S[number]['output']>;
export type ZodRecord<K extends Schema<string>, V extends AnySchema> = Schema<
  Record<K['input'], V['input']>,
  Record<K['output'], V['output']>
>;
export type ZodObject<Shape extends Record<string, AnySchema>, _Config> = Schema<
  Fields<{ [K in keyof Shape]: Shape[K]['input'] }>,
  Fields<{ [K in keyof Shape]: Shape[K]['output'] }>
>;

/** A field that may be undefined may also be absent. */
type Fields<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: T[K];
};

export namespace core {
  type $strict = unknown;
  /** A problem that a schema has found. */
  interface $ZodIssue {
    readonly code: string;
    readonly path: PropertyKey[];
    readonly message: string;
  }
}
