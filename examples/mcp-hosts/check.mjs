// Starts the MCP servers of a host's configuration as the host would, and prints their tools: node check.mjs vscode/mcp.json
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const PROTOCOL = '2025-11-25';
const PATIENCE_MS = 30_000;

const toolsOf = async ({ command, args = [], env = {} }) => {
  const server = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
  const timer = setTimeout(() => server.kill(), PATIENCE_MS);
  const failed = new Promise((_, reject) => server.once('error', reject));
  // The server may end while a message is written. The missing result below is the better error.
  server.stdin.on('error', () => {});
  const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const clientInfo = { name: 'check', version: '1' };
  send({ id: 1, method: 'initialize', params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo } });
  const answers = async () => {
    for await (const line of createInterface({ input: server.stdout })) {
      const { id, result } = JSON.parse(line);
      if (id === 2) return result.tools;
      if (id !== 1) continue;
      send({ method: 'notifications/initialized' });
      send({ id: 2, method: 'tools/list' });
    }
    throw new Error('the server ended without a list of tools');
  };
  try {
    return await Promise.race([answers(), failed]);
  } finally {
    clearTimeout(timer);
    server.stdin.end();
  }
};

const config = JSON.parse(readFileSync(process.argv[2], 'utf8'));
for (const [name, server] of Object.entries(config.mcpServers ?? config.servers)) {
  const tools = await toolsOf(server);
  console.log(`${name}: ${tools.map((tool) => tool.name).join(' ')}`);
}
