// `tunnel mcp` as used over stdio by the host of a model. Every line of output is a message.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

const PATIENCE_MS = 20_000;

export interface ToolResult {
  readonly structuredContent?: Record<string, unknown>;
  readonly content: readonly { readonly text: string }[];
  readonly isError?: boolean;
}

interface Told {
  readonly id: number;
  readonly result?: Record<string, unknown>;
}

export class McpProgram {
  readonly #program: TunnelProgram;
  #asked = 0;

  constructor(program: TunnelProgram) {
    this.#program = program;
  }

  async ask(method: string, params: object = {}): Promise<Record<string, unknown>> {
    this.#asked += 1;
    const id = this.#asked;
    const { stdout, stderr } = this.#program;
    this.#program.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const told = await eventually(
      () => {
        const message = stdout.map((line) => JSON.parse(line) as Told).find((one) => one.id === id);
        if (message === undefined) throw new Error(`no answer to ${method}:\n${stderr.join('\n')}`);
        return message;
      },
      { timeoutMs: PATIENCE_MS },
    );
    return told.result ?? {};
  }

  async tool(name: string, args: object = {}): Promise<ToolResult> {
    return (await this.ask('tools/call', { name, arguments: args })) as unknown as ToolResult;
  }

  /** Calls a tool, expects a failure, and returns the error text, `CODE: …`. */
  async failure(name: string, args: object): Promise<string> {
    const { isError, content } = await this.tool(name, args);
    expect(isError).toBe(true);
    return content[0]?.text ?? '';
  }
}
