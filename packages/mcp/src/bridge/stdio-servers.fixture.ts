// Stdio MCP servers for tests of the bridge. Two servers have the same features: a handwritten server for revision 2025-06-18 only, and a
// server on the 2026 SDK. A third server has almost no features and starts fast, for tests of start, end and misbehavior.
import { fileURLToPath } from 'node:url';
import type { ServerCommand } from './child-process.ts';

/**
 * How the shell server behaves. `polite`: an unknown request gets an error. `strict`: exits on any request before `initialize`. `silent`:
 * ignores a request before `initialize`. `stubborn`: ends neither with its stdin nor on SIGTERM, and has started a helper process.
 */
export type Manners = 'polite' | 'strict' | 'silent' | 'stubborn';

const INSTRUCTIONS = 'Ask me anything.';

const TOOLS = `
const text = (text) => ({ content: [{ type: 'text', text }] });
const say = (line) => process.stderr.write(line + '\\n');
const object = (properties) => ({ type: 'object', properties });
const TOOLS = {
  big: object({ bytes: { type: 'number' } }),
  crash: object({}),
  echo: object({ text: { type: 'string' } }),
  grow: object({}),
  hang: object({}),
  steps: object({}),
  variable: object({ name: { type: 'string' } }),
};
const COMMON = {
  big: ({ bytes }) => text('x'.repeat(bytes)),
  crash: () => process.exit(3),
  echo: ({ text: words }) => ({ ...text(words), structuredContent: { text: words } }),
  variable: ({ name }) => text(process.env[name] ?? '(none)'),
};
say('started ' + process.pid);
`;

const HAND_WRITTEN = `
import { createInterface } from 'node:readline';
${TOOLS}
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const fail = (code, message) => { throw Object.assign(new Error(message), { code }); };
const STOPPED = new Map();
const METHODS = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} },
    serverInfo: { name: 'by-hand', version: '1.2.3' },
    instructions: ${JSON.stringify(INSTRUCTIONS)},
  }),
  ping: () => ({}),
  // In pages of two.
  'tools/list': ({ cursor = '0' }) => {
    const tools = Object.entries(TOOLS).map(([name, inputSchema]) => ({ name, inputSchema }));
    const from = Number(cursor);
    return { tools: tools.slice(from, from + 2), ...(from + 2 < tools.length ? { nextCursor: String(from + 2) } : {}) };
  },
  'tools/call': ({ name, arguments: given = {}, _meta }, id) => {
    if (!(name in TOOLS)) fail(-32602, 'Tool ' + name + ' not found');
    if (name === 'hang') return new Promise((resolve, reject) => {
      say('hanging');
      STOPPED.set(id, () => { say('cancelled'); reject(null); });
    });
    if (name === 'grow') {
      TOOLS.grown = object({});
      send({ method: 'notifications/tools/list_changed' });
      return text('grown');
    }
    if (name === 'steps') {
      for (let step = 1; step <= 3; step += 1) {
        send({ method: 'notifications/progress', params: { progressToken: _meta?.progressToken, progress: step, total: 3, message: 'step ' + step } });
      }
      return text('token ' + JSON.stringify(_meta?.progressToken ?? null));
    }
    return COMMON[name](given);
  },
  'resources/list': () => ({ resources: [{ uri: 'test://one', name: 'one' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'test://{name}', name: 'any' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'this is ' + uri }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'name', required: true }] }] }),
  'prompts/get': ({ arguments: { name } }) => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Greet ' + name } }] }),
  'completion/complete': ({ argument: { value } }) => ({ completion: { values: ['ada', 'alan'].filter((name) => name.startsWith(value)) } }),
};
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === 'notifications/cancelled') return STOPPED.get(params.requestId)?.();
  if (id === undefined) return;
  try {
    send({ id, result: await (METHODS[method] ?? (() => fail(-32601, 'Method not found')))(params, id) });
  } catch (error) {
    if (error !== null) send({ id, error: { code: error.code ?? -32603, message: error.message } });
  }
}).on('close', () => process.exit(0));
`;

const ON_SDK = `
import { completable, fromJsonSchema, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
${TOOLS}
let hasGrown = false;
serveStdio(() => {
  const server = new McpServer({ name: 'on-sdk', version: '1.2.3' }, { instructions: ${JSON.stringify(INSTRUCTIONS)} });
  const SPECIAL = {
    hang: (_given, { mcpReq: { signal } }) => new Promise((resolve, reject) => {
      say('hanging');
      signal.addEventListener('abort', () => { say('cancelled'); reject(signal.reason); });
    }),
    grow: () => {
      hasGrown = true;
      server.registerTool('grown', { inputSchema: fromJsonSchema(object({})) }, () => text('as you see'));
      return text('grown');
    },
    steps: async (_given, { mcpReq: { _meta, notify } }) => {
      const progressToken = _meta?.progressToken;
      for (let step = 1; step <= 3 && progressToken !== undefined; step += 1) {
        await notify({ method: 'notifications/progress', params: { progressToken, progress: step, total: 3, message: 'step ' + step } });
      }
      return text('token ' + JSON.stringify(progressToken ?? null));
    },
  };
  for (const [name, schema] of Object.entries(TOOLS)) {
    server.registerTool(name, { inputSchema: fromJsonSchema(schema) }, SPECIAL[name] ?? COMMON[name]);
  }
  if (hasGrown) server.registerTool('grown', { inputSchema: fromJsonSchema(object({})) }, () => text('as you see'));
  const read = (uri) => ({ contents: [{ uri: String(uri), text: 'this is ' + uri }] });
  server.registerResource('one', 'test://one', {}, read);
  server.registerResource('any', new ResourceTemplate('test://{name}', { list: undefined }), {}, read);
  const name = completable(z.string(), (value) => ['ada', 'alan'].filter((known) => known.startsWith(value)));
  server.registerPrompt('greet', { argsSchema: z.object({ name }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Greet ' + name } }],
  }));
  return server;
});
`;

/**
 * Shell script of a server for revision 2025-06-18 with the tools `echo` and `crash`. The server exits at once while the file in its
 * second argument exists.
 */
const IN_SHELL = `
[ ! -e "$2" ] || exit 9
[ "$1" != stubborn ] || { trap '' TERM; sleep 60 >&2 & echo "helper $!" >&2; }
answer() { echo '{"jsonrpc":"2.0","id":'"$id,$1"'}'; }
is_ready=
while read -r line; do
  id=\${line##*'"id":'} id=\${id%%[,\\}]*}
  text=\${line##*'"text":"'} text=\${text%%'"'*}
  case $line in
    *'"initialize"'*)
      is_ready=1
      answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"in-shell","version":"1"}}' ;;
    *'"notifications/'*) ;;
    *'"tools/list"'*)
      answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"crash","inputSchema":{"type":"object"}}]}' ;;
    *'"crash"'*) exit 3 ;;
    *'"echo"'*) answer '"result":{"content":[{"type":"text","text":"'"$text"'"}]}' ;;
    *)
      [ "$is_ready$1" != strict ] || exit 1
      [ "$is_ready$1" != silent ] || continue
      answer '"error":{"code":-32601,"message":"Method not found"}' ;;
  esac
done
[ "$1" != stubborn ] || while :; do sleep 60; done
`;

/** Folder for resolving the imports of the scripts. */
const HERE = fileURLToPath(new URL('..', import.meta.url));

const runs = (script: string): ServerCommand => ({
  command: process.execPath,
  args: ['--input-type=module', '-e', script],
  env: { ...process.env, GIVEN: 'to the server' },
  cwd: HERE,
});

export const handWrittenServer = (): ServerCommand => runs(HAND_WRITTEN);
export const sdkServer = (): ServerCommand => runs(ON_SDK);

/** The server exits at once while the file `brokenBy` exists. */
export const shellServer = (manners: Manners = 'polite', brokenBy = '/no-such-file'): ServerCommand => ({
  command: '/bin/sh',
  args: ['-c', IN_SHELL, 'server', manners, brokenBy],
  env: process.env,
  cwd: HERE,
});

export const TOOL_NAMES = ['big', 'crash', 'echo', 'grow', 'hang', 'steps', 'variable'];
