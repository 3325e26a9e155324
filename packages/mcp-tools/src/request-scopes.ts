// Which scopes a token needs for what a body asks: known before a server is made, so that the answer can be 403 and name them.
import { readAddress } from './resources.ts';
import type { Scope } from './scopes.ts';
import { TOOLS } from './tool-facts.ts';
import type { ToolName } from './tool-host.ts';

/** Of a body as it was parsed, whatever it is; each scope once. Empty: none, or nothing that we know. */
export const scopesOfBody = (body: unknown): readonly Scope[] => {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  const scopes = new Set<Scope>();
  for (const message of messages) {
    const tool = toolOf(message);
    const scope = tool === null ? null : (TOOLS.get(tool)?.scope ?? null);
    if (scope !== null) scopes.add(scope);
  }
  return [...scopes];
};

/** The tool that is called, or that stands behind the resource. */
const toolOf = (message: unknown): ToolName | null => {
  if (!isRecord(message) || !isRecord(message['params'])) return null;
  const { method, params } = message;
  const { name, uri } = params as { readonly name?: unknown; readonly uri?: unknown };
  // A name that is no tool has no facts either.
  if (method === 'tools/call' && typeof name === 'string') return name as ToolName;
  if (method === 'resources/read' && typeof uri === 'string') return readAddress(uri)?.kind.tool ?? null;
  return null;
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
