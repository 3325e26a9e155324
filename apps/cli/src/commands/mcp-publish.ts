// `tunnel mcp-publish -- COMMAND`: publishes a stdio MCP server at a public URL. The code that runs the server is loaded on demand.
import { Command } from 'commander';
import { addConnectionFlags, FLAG_GROUPS } from '../config/flags.ts';
import { tunnelOptions } from '../config/tunnel-flags.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import type { McpPublishFlags } from '../mcp/publish/publish-server.ts';

const PAGE: Page = {
  common: ['--subdomain', '--domain', '--token-file', '--no-auth', '--allow-tool', '--json', '--server', '--config'],
  examples: [
    'tunnel mcp-publish -- npx -y @modelcontextprotocol/server-everything',
    'tunnel mcp-publish --subdomain notes --token-file token -- python notes.py',
    'tunnel mcp-publish --allow-tool search --allow-tool read -- ./server --root /srv/docs',
  ],
  note: `The MCP server is available at <public URL>/mcp for MCP clients of revision
2025-06-18 and later. If the command exits, it is restarted. The API key comes
from config.yml, TUNNEL_API_KEY or --token.`,
};

const HOST_FLAGS = ['--subdomain', '--domain'];

const addHostOptions = (command: Command): Command => {
  for (const option of tunnelOptions('http')) if (HOST_FLAGS.includes(option.long ?? '')) command.addOption(option);
  return command;
};

export const mcpPublishCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(
    addConnectionFlags(
      addHostOptions(
        new Command('mcp-publish')
          .description('Publish a stdio MCP server at a public URL')
          .argument('<command...>', 'Command that runs the MCP server, after --'),
      )
        .optionsGroup('Callers:')
        .option('--token-file <file>', 'File with the bearer token (default: generate)')
        .option('--no-auth', 'Allow calls without a token')
        .option('--allow-tool <name...>', 'Publish only these tools')
        .optionsGroup(FLAG_GROUPS.output)
        .option('--capture', 'Record requests with their bodies'),
      { hasTokenFile: false },
    ),
    PAGE,
  ).action(async (command: string[], flags: McpPublishFlags) => {
    const { publishServer } = await import('../mcp/publish/publish-server.ts');
    finish(await publishServer(command, flags, io));
  });
