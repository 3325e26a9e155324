// Cache of MCP listings (the offered tools, resources and prompts). A listing depends only on the wording of the request and on the
// caller's scopes. Hosts ask for listings at every turn, so a listing is produced once and reused for identical requests.
import { Cache } from '@tunnel/runtime';
import type { McpCaller } from './mcp-caller.ts';
import type { McpMessage } from './mcp-message.ts';

/** Maximum number of cached results of listing requests to /mcp. */
const MCP_LISTINGS_MAX = 200;
/** Maximum length of a cache key. Longer listing requests are not cached. */
const MCP_LISTING_KEY_MAX_CHARACTERS = 2000;

const LISTINGS: ReadonlySet<unknown> = new Set([
  ...['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'],
]);

/** Request headers read by the MCP server. The cache key includes their values. */
const HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params']);

export class ListingAnswers {
  /** Results as JSON, by the request without its id. Stored as bytes, because encoding takes longer than all other steps. */
  readonly #results = new Cache<string, Uint8Array>({ max: MCP_LISTINGS_MAX });

  /** Returns the cache key of a message, or null if the message is not a cacheable listing request. */
  keyOf({ scopes }: McpCaller, message: McpMessage, header: (name: string) => string | undefined): string | null {
    const { id, method } = message;
    if (!LISTINGS.has(method) || (typeof id !== 'string' && !Number.isSafeInteger(id))) return null;
    // Messages with unknown members go to the server, which reports the error.
    if (!Object.keys(message).every((member) => MEMBERS.has(member))) return null;
    const key = wordsOf([[...scopes], HEADERS.map(header), message['jsonrpc'], method, message['params']]);
    return key === null || key.length > MCP_LISTING_KEY_MAX_CHARACTERS ? null : key;
  }

  find(key: string, { id }: McpMessage): Response | null {
    const result = this.#results.get(key);
    return result === undefined ? null : answerOf(id, result);
  }

  /** Stores the server's result and returns the response. Error responses are not stored. */
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

/** Returns the request as JSON, or null if the request is nested too deeply to be serialized; the parser accepts any depth. */
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
