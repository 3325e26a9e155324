// An MCP server on stdio with one tool, one resource and one prompt, to be published.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const create = () => {
  const server = new McpServer({ name: 'small', version: '1.0.0' });
  server.registerTool(
    'greet',
    { title: 'Greet', description: 'Says hello.', inputSchema: z.object({ name: z.string() }) },
    ({ name }) => ({ content: [{ type: 'text', text: `hello ${name}` }] }),
  );
  server.registerResource('note', 'small://note', { title: 'A note', mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, text: 'noted' }],
  }));
  server.registerPrompt('ask', { title: 'Ask', description: 'Asks for a greeting.' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Greet ann.' } }],
  }));
  return server;
};
serveStdio(create);
