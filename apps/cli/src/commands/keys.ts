// `tunnel keys`: the API keys of the account that is logged in.
import { Fault } from '@tunnel/errors';
import { Command } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { PROXY_FLAG } from '../flags.ts';
import type { Io } from '../io.ts';
import { keyLines } from '../output/account.ts';
import { coloursOf } from '../output/text.ts';
import { type KeyStore, prepareKeyStore } from '../private-files.ts';
import { oneLine } from '../problem-report.ts';
import { requireTerminal, withPrompt } from '../terminal-prompt.ts';

type Finish = (code: ExitCode) => void;

export const keysCommand = (io: Io, finish: Finish): Command => {
  const keys = new Command('keys')
    .description('list, create and revoke API keys, after `tunnel login`')
    .addHelpText('after', '\nExample:\n  $ tunnel keys create --label laptop --save');
  for (const command of [listCommand, createCommand, revokeCommand]) keys.addCommand(command(io, finish));
  return keys;
};

const listCommand = (io: Io, finish: Finish): Command =>
  new Command('list')
    .description('show the keys of the account')
    .option(...PROXY_FLAG)
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExample:\n  $ tunnel keys list')
    .action(async ({ json, ...flags }: { json?: boolean; proxy?: string }) => {
      const keys = await PlatformLogin.open(io, flags).call((client) => client.keys());
      io.stdout.write(json === true ? `${JSON.stringify(keys)}\n` : `${keyLines(keys, coloursOf(io)).join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

interface CreateFlags {
  readonly label: string;
  readonly save?: boolean;
  readonly json?: boolean;
  readonly proxy?: string;
  readonly config?: string;
}

const CREATE_EXAMPLES = `
Example:
  $ tunnel keys create --label laptop --save
  $ tunnel keys create --label ci > key.txt

The key is shown this once. --save does not show it: it is put into the file \`key\` beside config.yml, which then names it.`;

const createCommand = (io: Io, finish: Finish): Command =>
  new Command('create')
    .description('make a key for a tunnel client')
    .requiredOption('--label <text>', 'what you call it, 1 to 100 characters')
    .option('--save', 'keep it for the tunnels of this machine')
    .option('--json', 'print id and key as JSON')
    .option(...PROXY_FLAG)
    .option('--config <file>', 'with --save: the config file (default: ~/.tunnel/config.yml)')
    .addHelpText('after', CREATE_EXAMPLES)
    .action(async ({ label, save, json, ...flags }: CreateFlags) => {
      const login = PlatformLogin.open(io, flags);
      const store = save === true ? prepareKeyStore(flags.config, io) : null;
      const created = await login.call((client) => client.createKey({ label }));
      if (store !== null) saveKey(store, created.token, io);
      if (json === true) io.stdout.write(`${JSON.stringify(store === null ? created : { id: created.id })}\n`);
      else if (store === null) {
        io.stderr.write(`key ${oneLine(created.id)} is made; it is shown this once:\n`);
        io.stdout.write(`${oneLine(created.token)}\n`);
      } else io.stdout.write(keptText(created.id, store));
      finish(EXIT.endedAsAsked);
    });

const keptText = (id: string, { keyFile, oldKeyFile }: KeyStore): string =>
  [
    `key ${oneLine(id)} is made and kept in ${keyFile}`,
    ...(oldKeyFile === null
      ? []
      : [`  the key before it is in ${oldKeyFile}; revoke it when nothing uses it any more`]),
    '',
  ].join('\n');

const saveKey = (store: KeyStore, key: string, io: Io): void => {
  try {
    store.save(key);
  } catch (error) {
    // It exists by now, and nobody can show it again.
    io.stdout.write(`${key}\n`);
    throw error;
  }
  if ((io.env['TUNNEL_API_KEY'] ?? '') !== '') {
    io.stderr.write('tunnel: note: TUNNEL_API_KEY is set, and wins over the key that was kept\n');
  }
};

const revokeCommand = (io: Io, finish: Finish): Command =>
  new Command('revoke')
    .description('revoke a key: tunnels that use it are closed within 2 seconds')
    .argument('<id>', 'the id that `tunnel keys list` shows')
    .option('--yes', 'without asking')
    .option(...PROXY_FLAG)
    .addHelpText('after', '\nExample:\n  $ tunnel keys revoke 0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11')
    .action(async (id: string, { yes, ...flags }: { yes?: boolean; proxy?: string }) => {
      const login = PlatformLogin.open(io, flags);
      if (yes !== true && !(await confirm(login, id, io))) {
        io.stdout.write('nothing was revoked\n');
        return finish(EXIT.endedAsAsked);
      }
      await login.call((client) => client.revokeKey(id));
      io.stdout.write(`key ${oneLine(id)} is revoked\n`);
      finish(EXIT.endedAsAsked);
    });

const confirm = async (login: PlatformLogin, id: string, io: Io): Promise<boolean> => {
  const instead = 'give --yes';
  requireTerminal(io, instead);
  const key = (await login.call((client) => client.keys())).find((one) => one.id === id);
  if (key === undefined) throw new Fault('KEY_UNKNOWN');
  const question = `Revoke the key "${oneLine(key.label)}" (${oneLine(id)})? [y/N] `;
  const answer = await withPrompt(io, instead, (prompt) => prompt.ask(question));
  return /^y(es)?$/i.test(answer.trim());
};
