// Initializes with an MCP server through a tunnel, and calls its tool; prints how the progress came. Usage: mcp-client.mjs URL
import dns from 'node:dns';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

// Not every system resolves *.localhost.
const { lookup } = dns;
dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest);

const client = new Client({ name: 'try', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2] ?? '')));
const { tools } = await client.listTools();
const heard = [];
const onprogress = () => heard.push(performance.now());
const { content } = await client.callTool({ name: 'count', arguments: { to: 5 } }, undefined, { onprogress });
const spreadMs = heard.length > 1 ? Math.round(heard.at(-1) - heard[0]) : 0;
await client.close();
// The tool takes 50 ms for each step: heard at once they would have been held back.
const isStreamed = heard.length === 5 && spreadMs > 100;
const isRight = tools.length === 1 && content[0].text === 'counted to 5';
console.log(`${heard.length} steps within ${spreadMs} ms`);
process.exit(isStreamed && isRight ? 0 : 1);
