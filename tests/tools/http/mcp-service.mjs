// An MCP server over streamable HTTP, with a tool that reports its progress as it works. Runs where the SDK is installed.
// Usage: mcp-service.mjs PORT
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const sessions = new Map();

const newSession = async () => {
  const server = new McpServer({ name: 'try', version: '1.0.0' });
  server.registerTool('count', { inputSchema: { to: z.number() } }, async ({ to }, extra) => {
    for (let progress = 1; progress <= to; progress += 1) {
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken: extra._meta?.progressToken ?? 0, progress, total: to },
      });
      await pause(50);
    }
    return { content: [{ type: 'text', text: `counted to ${to}` }] };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
};

createServer((request, response) => {
  const known = sessions.get(request.headers['mcp-session-id']);
  void Promise.resolve(known ?? newSession()).then((transport) => transport.handleRequest(request, response));
}).listen(Number(process.argv[2]), '127.0.0.1');
