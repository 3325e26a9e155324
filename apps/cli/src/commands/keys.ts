// `tunnel keys`: lists, creates and revokes API keys of the signed-in account.
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import { Command } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { loadConfig } from '../config/file.ts';
import { PROXY_FLAG } from '../config/flags.ts';
import { findToken } from '../config/settings.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { ADD_YES, askYesOrNo, requireTerminal } from '../io/terminal-prompt.ts';
import { type KeyLook, keyLines } from '../output/account.ts';
import { coloursOf } from '../output/text.ts';
import { prepareKeyStore } from '../setup/key-store.ts';
import { createKey, savedKeyLines, saveNewKey } from '../setup/login-setup.ts';

type Finish = (code: ExitCode) => void;

const EXAMPLES = `
Examples:
  $ tunnel keys
  $ tunnel keys create --label laptop --save`;

export const keysCommand = (io: Io, finish: Finish): Command =>
  new Command('keys')
    .description('List, create and revoke API keys')
    .addHelpText('after', EXAMPLES)
    .addCommand(listCommand(io, finish), { isDefault: true })
    .addCommand(createCommand(io, finish))
    .addCommand(revokeCommand(io, finish));

const LIST_EXAMPLES = `
Examples:
  $ tunnel keys
  $ tunnel keys list --json

"this computer" marks the key used by tunnels on this computer.`;

const listCommand = (io: Io, finish: Finish): Command =>
  new Command('list')
    .description("List the account's API keys")
    .option(...PROXY_FLAG)
    .option('--json', 'Print the list as JSON')
    .addHelpText('after', LIST_EXAMPLES)
    .action(async ({ json, ...flags }: { json?: boolean; proxy?: string }) => {
      const keys = await PlatformLogin.open(io, flags).call((client) => client.keys());
      const lines = json === true ? [JSON.stringify(keys)] : keyLines(keys, lookOf(io));
      io.stdout.write(`${lines.join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const lookOf = (io: Io): KeyLook => ({
  usedHash: usedKeyHash(io),
  width: io.stdout.isTTY === true ? (io.stdout.columns ?? null) : null,
  colours: coloursOf(io),
});

/**
 * Returns the hash of the API key used by tunnels of this computer. Returns null if there is no key, or if the key cannot be read; the
 * list of keys then marks no key.
 */
const usedKeyHash = (io: Io): string | null => {
  try {
    return sha256Hex(findToken({}, loadConfig(undefined, io), io).token.reveal());
  } catch {
    return null;
  }
};

interface CreateFlags {
  readonly label: string;
  readonly save?: boolean;
  readonly json?: boolean;
  readonly proxy?: string;
  readonly config?: string;
}

const CREATE_EXAMPLES = `
Examples:
  $ tunnel keys create --label laptop --save
  $ tunnel keys create --label ci > key.txt

The key is shown only once. With --save, it is saved to the file \`key\` next to
config.yml instead.`;

const createCommand = (io: Io, finish: Finish): Command =>
  new Command('create')
    .description('Create an API key')
    .requiredOption('--label <text>', 'Label for the key, such as a computer name (1-100 characters)')
    .option('--save', 'Save the key for this computer instead of printing it')
    .option('--json', 'Print the id and the key as JSON')
    .option(...PROXY_FLAG)
    .option('--config <file>', 'With --save: config file (default: ~/.tunnel/config.yml)')
    .addHelpText('after', CREATE_EXAMPLES)
    .action(async ({ label, save, json, ...flags }: CreateFlags) => {
      const login = PlatformLogin.open(io, flags);
      const store = save === true ? prepareKeyStore(flags.config, io) : null;
      const created = await createKey(login, label);
      if (store !== null) saveNewKey(store, created.token, io);
      if (json === true) io.stdout.write(`${JSON.stringify(store === null ? created : { id: created.id })}\n`);
      else if (store === null) {
        io.stderr.write("Copy this key now. You won't see it again.\n");
        io.stdout.write(`${created.token}\n`);
      } else io.stdout.write(`${savedKeyLines(store, io).join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const revokeCommand = (io: Io, finish: Finish): Command =>
  new Command('revoke')
    .description('Revoke an API key; its tunnels close within 2 seconds')
    .argument('<id>', 'Id of the key (see `tunnel keys list`)')
    .option('--yes', 'Skip the confirmation')
    .option(...PROXY_FLAG)
    .addHelpText('after', '\nExamples:\n  $ tunnel keys revoke 0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11')
    .action(async (id: string, { yes, ...flags }: { yes?: boolean; proxy?: string }) => {
      const login = PlatformLogin.open(io, flags);
      if (yes !== true && !(await confirm(login, id, io))) {
        io.stdout.write('Nothing revoked.\n');
        return finish(EXIT.endedAsAsked);
      }
      await login.call((client) => client.revokeKey(id));
      io.stdout.write('API key revoked.\n');
      finish(EXIT.endedAsAsked);
    });

const confirm = async (login: PlatformLogin, id: string, io: Io): Promise<boolean> => {
  requireTerminal(io, ADD_YES);
  const key = (await login.call((client) => client.keys())).find((one) => one.id === id);
  if (key === undefined) throw new Fault('KEY_UNKNOWN');
  return askYesOrNo(io, `Revoke the key "${oneLine(key.label)}" (${oneLine(id)})? Its tunnels will close.`);
};
