// Answers to questions whose answer depends on their words and the scopes of the caller alone: what is offered. Hosts ask for it at every turn, so
// that one is made by a server once, and given again to whoever asks in the very same words.
import { Cache } from '@tunnel/runtime';
import type { McpCaller } from './mcp-caller.ts';
import type { McpMessage } from './mcp-message.ts';

/** Answers to questions for what /mcp offers, which hosts ask at every turn in the same words. */
const MCP_LISTINGS_MAX = 200;
/** Longer questions are answered anew each time. */
const MCP_LISTING_KEY_MAX_CHARACTERS = 2000;

const LISTINGS: ReadonlySet<unknown> = new Set([
  ...['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'],
]);

/** All that a server looks at besides the message. */
const HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params']);

export class ListingAnswers {
  /** The result as JSON, by the question without its id. As bytes: turning it into them takes longer than all the rest. */
  readonly #results = new Cache<string, Uint8Array>({ max: MCP_LISTINGS_MAX });

  /** null: it is no such question. */
  keyOf({ scopes }: McpCaller, message: McpMessage, header: (name: string) => string | undefined): string | null {
    const { id, method } = message;
    if (!LISTINGS.has(method) || (typeof id !== 'string' && !Number.isSafeInteger(id))) return null;
    // Whatever is odd about it is for a server to say.
    if (!Object.keys(message).every((member) => MEMBERS.has(member))) return null;
    const key = wordsOf([[...scopes], HEADERS.map(header), message['jsonrpc'], method, message['params']]);
    return key === null || key.length > MCP_LISTING_KEY_MAX_CHARACTERS ? null : key;
  }

  find(key: string, { id }: McpMessage): Response | null {
    const result = this.#results.get(key);
    return result === undefined ? null : answerOf(id, result);
  }

  /** What a server said; a refusal is said anew each time. */
  async keep(key: string, { id }: McpMessage, response: Response): Promise<Response> {
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    if (response.status !== 200 || !isJson) return response;
    const text = await response.text();
    const { result } = JSON.parse(text) as { readonly result?: unknown };
    if (result === undefined) return new Response(text, { headers: JSON_TYPE });
    const kept = Buffer.from(`,"result":${JSON.stringify(result)}}`);
    this.#results.set(key, kept);
    return answerOf(id, kept);
  }
}

/** null: what the parser takes whatever its depth is too deep to be written down. */
const wordsOf = (question: readonly unknown[]): string | null => {
  try {
    return JSON.stringify(question);
  } catch {
    return null;
  }
};

const JSON_TYPE = { 'content-type': 'application/json' };

const answerOf = (id: unknown, result: Uint8Array): Response =>
  new Response(Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)}`), result]), {
    headers: JSON_TYPE,
  });
