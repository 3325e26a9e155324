// A tool: what a model is told of it, what it takes and gives, and what it does with a host.
import * as z from 'zod';
import { readArguments } from './arguments.ts';
import { toolFacts } from './tool-facts.ts';
import type { ToolCall, ToolHost, ToolName } from './tool-host.ts';

/** The part of a clock that tools need; the runtime's has it. */
export interface ToolClock {
  /** Milliseconds that only ever grow. */
  monotonic(): number;
  setInterval(run: () => void, ms: number): { cancel(): void };
}

/** A call with the time that it is measured by. */
export interface TimedCall extends ToolCall {
  readonly clock: ToolClock;
}

interface ToolDefinition<Input extends z.ZodType, Output extends z.ZodObject> {
  readonly name: ToolName;
  readonly title: string;
  /** For a model: what it does, what it costs, when not to use it. */
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  /** The list that is cut when the result has no room for it; left out: long texts are. */
  readonly list?: string & keyof z.input<Output>;
  run(host: ToolHost, input: z.output<Input>, call: TimedCall): Promise<z.input<Output>>;
}

type JsonSchema = { type: 'object'; [keyword: string]: unknown };

export type ToolOutput = Readonly<Record<string, unknown>>;

/** A tool whose types have been closed over. */
export interface Tool {
  readonly name: ToolName;
  /** As it stands in the listing; made once. */
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
  /** Throws a Fault that names the argument. */
  read(given: unknown): Readonly<Record<string, unknown>>;
  /** With what `read` gave. Fields that the schema of the output does not have are left out. */
  run(host: ToolHost, input: Readonly<Record<string, unknown>>, call: TimedCall): Promise<ToolOutput>;
}

export const defineTool = <Input extends z.ZodType<Record<string, unknown>>, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool => {
  const { name, title, description, input, list = null } = definition;
  // Said of everything that did not fit, whatever the tool.
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
    // Strips what the schema does not know: a newer edge's field, and what of a key is nobody's business.
    run: async (host, read, call) => shown.parse(await definition.run(host, read as z.output<Input>, call)),
  };
};

/** No descriptions, no names of schemas: nobody pays for the words of an output before there is one. */
const WITHOUT_WORDS = z.registry<z.core.GlobalMeta>();

const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema => {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    io,
    ...(io === 'output' ? { metadata: WITHOUT_WORDS } : {}),
    override: ({ jsonSchema }) => {
      // Half a page of digits, where the format says the same.
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      // What every number and every key is by itself.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      delete jsonSchema.propertyNames;
      // A host may know more than this schema: callers that check are not to stumble over it.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return { ...json, type: 'object' };
};
