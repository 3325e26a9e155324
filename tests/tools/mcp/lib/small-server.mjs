// An MCP server on stdio with the 2025 protocol revisions and a single tool, resource and prompt. It is published through a tunnel.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as z from 'zod';

const server = new McpServer({ name: 'small', version: '1.0.0' });
server.registerTool(
  'greet',
  { title: 'Greet', description: 'Says hello.', inputSchema: { name: z.string() } },
  ({ name }) => ({ content: [{ type: 'text', text: `hello ${name}` }] }),
);
server.registerResource('note', 'small://note', { title: 'A note', mimeType: 'text/plain' }, (uri) => ({
  contents: [{ uri: uri.href, text: 'noted' }],
}));
server.registerPrompt('ask', { title: 'Ask', description: 'Asks for a greeting.' }, () => ({
  messages: [{ role: 'user', content: { type: 'text', text: 'Greet ann.' } }],
}));
await server.connect(new StdioServerTransport());
