// `tunnel mcp`: a server of the Model Context Protocol on the standard streams. The protocol itself is loaded when it runs.
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
stdout carries the protocol alone: a program starts this command and speaks to it. Tunnels run in
this process and end with it. Without --allow and \`mcp.allow\` a model may open ports of this
machine from 1024 on.

Examples:
  $ tunnel mcp
  $ tunnel mcp --read-only
  $ tunnel mcp --allow 127.0.0.1:3000 192.168.1.5:8080-8090`;

export const mcpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(
    new Command('mcp')
      .description('Let a model open tunnels and read requests (MCP on stdio)')
      .option('--read-only', 'Only tools that change nothing')
      .option('--allow <target...>', 'What a model may open: host:port, host:from-to, host:* (default: config.yml)')
      .optionsGroup(FLAG_GROUPS.output)
      .option('--log-file <file>', 'Write events and calls to this file as JSON (5 files of 10 MiB)'),
  )
    .option('--client-name <name>', 'Name of this computer (default: its host name)')
    .option('--api <url>', 'REST API of the edge (default: config.yml, else port 4041 of the server)')
    .addHelpText('after', EXAMPLES)
    .action(async ({ readOnly, allow, ...flags }: McpFlags) => {
      const { serveMcp } = await import('../mcp/serve-mcp.ts');
      // What is not understood is said now, to a person, and not to a model that asks for a tunnel later.
      if (allow !== undefined) (await import('../mcp/wanted-tunnel.ts')).allowedTargets(allow);
      const rules = () => loadConfig(flags.config, io)?.values.mcp;
      const isReadOnly = readOnly ?? rules()?.read_only ?? false;
      finish(await serveMcp({ flags, readOnly: isReadOnly, allow: () => allow ?? rules()?.allow ?? null }, io));
    });
