// One server for both hosts and both eras of the protocol: what a host offers, as tools, resources, prompts and completions.
import { McpServer } from '@modelcontextprotocol/server';
import type { Fault } from '@tunnel/errors';
import type { Scope } from './scopes.ts';
import type { ToolHost, ToolName } from './tool-host.ts';

/** The part of a clock that tools need; the runtime's has it. */
export interface ToolClock {
  /** Milliseconds that only ever grow. */
  monotonic(): number;
  setInterval(run: () => void, ms: number): { cancel(): void };
}

/** What became of a call. */
export interface ToolOutcome {
  readonly tool: ToolName;
  /** `refused`: the caller's doing (arguments, an unknown tunnel, it hung up); `error`: ours. */
  readonly outcome: 'ok' | 'error' | 'refused';
  /** As it was checked; null: it was refused for its arguments. */
  readonly input: Readonly<Record<string, unknown>> | null;
  /** null: it went well. */
  readonly fault: Fault | null;
}

export interface ToolServerOptions {
  /** Of the product. */
  readonly version: string;
  readonly clock: ToolClock;
  /** Only tools that change nothing exist. */
  readonly readOnly?: boolean;
  /** Left out: all of them. Tools outside do not exist. */
  readonly scopes?: ReadonlySet<Scope>;
  /** Once for each call of a tool that exists. */
  onCall?(outcome: ToolOutcome): void;
}

export const createToolServer = (_host: ToolHost, { version }: ToolServerOptions): McpServer =>
  new McpServer({ name: 'tunnel', title: 'Tunnel', version });
