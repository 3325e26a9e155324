// `tunnel add http|files|tcp|tls|udp …`: opens one more tunnel in a running client, with the arguments of the command of the same name.
import { Command } from 'commander';
import { addClientFlag, type ClientFlags, chooseClient } from '../agent/choose-client.ts';
import { specToWire } from '../agent/spec-wire.ts';
import { describeTunnel, type Target, type TunnelFlags } from '../config/described-tunnel.ts';
import { saveTunnelEntry } from '../config/entries.ts';
import { defaultConfigPath } from '../config/file.ts';
import { KIND_NAMES, type KindName } from '../config/kinds.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import type { JsonEvent } from '../output/json.ts';
import { describingCommand, exampleLines } from './publish.ts';

interface AddFlags extends ClientFlags, TunnelFlags {
  readonly save?: boolean;
  readonly json?: boolean;
}

type Finish = (code: ExitCode) => void;

const EXAMPLES = `
Examples:
  $ tunnel add http 3000 --subdomain shop
  $ tunnel add tcp 22 --name ssh --save    # also save to config.yml

\`tunnel add http\` takes the argument and options of \`tunnel http\`, except the
connection options, plus --client, --save and --json. The same applies to
files, tcp, tls and udp.`;

export const addTunnelCommand = (io: Io, finish: Finish): Command => {
  const command = new Command('add').description('Add a tunnel to a running client').addHelpText('after', EXAMPLES);
  for (const kind of KIND_NAMES) {
    command.addCommand(
      addKindCommand(kind).action(async (target: Target, flags: AddFlags) =>
        finish(await add(kind, target, flags, io)),
      ),
    );
  }
  return command;
};

/**
 * Creates the command for one kind of tunnel. The help only names the flags that describe the tunnel. Their descriptions are in the help
 * of the publishing command, such as `tunnel http`.
 */
const addKindCommand = (kind: KindName): Command => {
  const command = describingCommand(kind);
  const flags = command.options.map(({ long }) => long ?? '');
  for (const option of command.options) option.hideHelp();
  return addClientFlag(command)
    .option('--save', "Also save the tunnel to the client's config.yml")
    .option('--json', 'Print the `ready` event instead of the public URL')
    .addHelpText(
      'after',
      `\nAlso takes these options of \`tunnel ${kind}\` (see \`tunnel ${kind} --help\`):\n${filled(flags)}\n\nExamples:\n${examplesOf(kind)}`,
    );
};

const examplesOf = (kind: KindName): string =>
  exampleLines(kind)
    .map((line) => `  $ ${line.replace('tunnel', 'tunnel add')}`)
    .join('\n');

const COLUMNS = 78;

const filled = (words: readonly string[]): string => {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || `${last} ${word}`.length > COLUMNS) lines.push(`  ${word}`);
    else lines.splice(-1, 1, `${last} ${word}`);
  }
  return lines.join('\n');
};

const add = async (kind: KindName, target: Target, flags: AddFlags, io: Io): Promise<ExitCode> => {
  const { spec, entry } = describeTunnel(kind, target, flags, io);
  const client = await chooseClient(flags, io);
  const saved = flags.save === true ? entry() : null;
  const call = { method: 'POST', path: '/tunnels', json: await specToWire(spec), isSlow: true } as const;
  const ready = (await client.ask(call)).json as JsonEvent;
  io.stdout.write(`${flags.json === true ? JSON.stringify(ready) : oneLine(String(ready['public_url']))}\n`);
  const warnings = Array.isArray(ready['warnings']) ? ready['warnings'] : [];
  for (const warning of warnings) io.stderr.write(`warning: ${oneLine(String(warning))}\n`);
  // The tunnel is saved only after the edge has accepted it.
  if (saved !== null) saveTunnelEntry(client.status.config ?? defaultConfigPath(io), spec.name, saved, io);
  return EXIT.endedAsAsked;
};
