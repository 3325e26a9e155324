// `tunnel mcp`: runs an MCP (Model Context Protocol) server on the standard streams. The code of the protocol is loaded on demand.
import { Command } from 'commander';
import { loadConfig } from '../config/file.ts';
import { addServerFlags, FLAG_GROUPS } from '../config/flags.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import type { LocalHostFlags } from '../mcp/local-host.ts';

interface McpFlags extends LocalHostFlags {
  readonly readOnly?: boolean;
  readonly allow?: readonly string[];
}

const EXAMPLES = `
An MCP client starts this command and talks to it over stdin and stdout.
Tunnels run in this process and close when it exits. Without --allow or
\`mcp.allow\`, an agent can publish any port of this computer from 1024 up.

Examples:
  $ tunnel mcp
  $ tunnel mcp --read-only
  $ tunnel mcp --allow 127.0.0.1:3000 192.168.1.5:8080-8090`;

export const mcpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(
    new Command('mcp')
      .description('Let an AI agent open tunnels and read requests')
      .option('--read-only', 'Offer only tools that change nothing')
      .option(
        '--allow <target...>',
        'Targets an agent can publish: host:port, host:from-to, host:* (default: config.yml)',
      )
      .optionsGroup(FLAG_GROUPS.output)
      .option('--log-file <file>', 'Also write events and calls to this file as JSON (5 files of 10 MiB)'),
  )
    .option('--client-name <name>', 'Name of this computer in lists (default: the host name)')
    .option('--api <url>', 'REST API of the edge (default: from config.yml, or port 4041 of the server)')
    .addHelpText('after', EXAMPLES)
    .action(async ({ readOnly, allow, ...flags }: McpFlags) => {
      const { serveMcp } = await import('../mcp/serve-mcp.ts');
      // An invalid target is reported to the user now, not to a model that requests a tunnel later.
      if (allow !== undefined) (await import('../mcp/wanted-tunnel.ts')).allowedTargets(allow);
      const rules = () => loadConfig(flags.config, io)?.values.mcp;
      const isReadOnly = readOnly ?? rules()?.read_only ?? false;
      finish(await serveMcp({ flags, readOnly: isReadOnly, allow: () => allow ?? rules()?.allow ?? null }, io));
    });
