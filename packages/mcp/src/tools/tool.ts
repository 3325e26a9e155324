// Definition of a tool: its description for models, its input and output schemas, and its implementation for a host.
import * as z from 'zod';
import { readArguments } from './arguments.ts';
import { toolFacts } from './tool-facts.ts';
import type { ToolCall, ToolHost, ToolName } from './tool-host.ts';

/** Subset of the runtime's clock that tools need. */
export interface ToolClock {
  /** Monotonic time in milliseconds. */
  monotonic(): number;
  setInterval(run: () => void, ms: number): { cancel(): void };
}

/** A tool call with a clock for measuring time. */
export interface TimedCall extends ToolCall {
  readonly clock: ToolClock;
}

interface ToolDefinition<Input extends z.ZodType, Output extends z.ZodObject> {
  readonly name: ToolName;
  readonly title: string;
  /** Description for a model: purpose, cost, and when not to use the tool. */
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  /** Name of the output's list that is shortened if the result is too large. Without a list, long texts are shortened. */
  readonly list?: string & keyof z.input<Output>;
  run(host: ToolHost, input: z.output<Input>, call: TimedCall): Promise<z.input<Output>>;
}

type JsonSchema = { type: 'object'; [keyword: string]: unknown };

export type ToolOutput = Readonly<Record<string, unknown>>;

/** A tool definition without its type parameters. */
export interface Tool {
  readonly name: ToolName;
  /** Entry of the tool in the tools/list result, prepared once. */
  readonly listing: {
    readonly name: ToolName;
    readonly title: string;
    readonly description: string;
    readonly inputSchema: JsonSchema;
    readonly outputSchema: JsonSchema;
    readonly annotations: {
      readonly title: string;
      readonly readOnlyHint: boolean;
      readonly destructiveHint: boolean;
      readonly idempotentHint: boolean;
      readonly openWorldHint: boolean;
    };
  };
  readonly list: string | null;
  /** Parses the arguments. Throws a Fault with the name of the invalid argument. */
  read(given: unknown): Readonly<Record<string, unknown>>;
  /** Runs the tool with the result of `read`. Fields missing from the output schema are removed. */
  run(host: ToolHost, input: Readonly<Record<string, unknown>>, call: TimedCall): Promise<ToolOutput>;
}

export const defineTool = <Input extends z.ZodType<Record<string, unknown>>, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool => {
  const { name, title, description, input, list = null } = definition;
  // Every output can have `truncated`, which is set if the result was shortened.
  const output = definition.output.extend({ truncated: z.boolean().optional() });
  const shown = 'truncated' in definition.output.shape ? definition.output : output;
  const { readOnly, destructive, openWorld } = toolFacts(name);
  return {
    name,
    list,
    listing: {
      name,
      title,
      description,
      inputSchema: jsonSchemaOf(input, 'input'),
      outputSchema: jsonSchemaOf(shown, 'output'),
      annotations: {
        title,
        readOnlyHint: readOnly,
        destructiveHint: destructive,
        idempotentHint: readOnly,
        openWorldHint: openWorld,
      },
    },
    read: (given) => readArguments(input, given),
    // Removes fields missing from the schema: new fields of a newer edge, and fields of API keys that must stay hidden.
    run: async (host, read, call) => shown.parse(await definition.run(host, read as z.output<Input>, call)),
  };
};

/** Empty registry that removes descriptions and schema names from output schemas, because a model pays for every word of a listing. */
const WITHOUT_WORDS = z.registry<z.core.GlobalMeta>();

const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema => {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    io,
    ...(io === 'output' ? { metadata: WITHOUT_WORDS } : {}),
    override: ({ jsonSchema }) => {
      // Drops the long pattern of a string with a format, which says the same.
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      // Drops limits that apply to every integer and every key.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      delete jsonSchema.propertyNames;
      // A host may return more fields than the schema has. Strict validation by a caller must not fail because of additional fields.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return { ...json, type: 'object' };
};
