// `tunnel-server admin`: what an operator does with accounts. Each change is written to the audit.
import { type ListedUser, listUsers, restore, setPlan, setUnlimited, suspend } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { Argument, Command } from 'commander';
import { EXIT_OK } from '../problem-report.ts';
import { withDatabase } from '../with-database.ts';
import { consoleOperator } from './console-operator.ts';
import { loadConfig, type ServerFlags, serverCommand } from './server-flags.ts';
import { tableText } from './table-text.ts';

interface Flags extends ServerFlags {
  readonly json?: boolean;
}

interface UsersFlags extends Flags {
  readonly after?: string;
}

type Act<T> = Parameters<typeof withDatabase<T>>[2];

const subcommand = (name: string, description: string, example: string): Command =>
  serverCommand(name, description)
    .option('--json', 'one JSON object on standard output')
    .addHelpText('after', `\nExample:\n  tunnel-server admin ${example}`);

export const admin = (finish: (code: number) => void): Command => {
  const open = <T>(flags: Flags, act: Act<T>): Promise<T> =>
    withDatabase(loadConfig(flags, process.env), { prepared: true }, act);
  const say = (flags: Flags, text: string, json: object): void => {
    process.stdout.write(`${flags.json === true ? JSON.stringify(json) : text}\n`);
    finish(EXIT_OK);
  };
  const sayChange = (flags: Flags, done: string, { changed }: { readonly changed: boolean }): void =>
    say(flags, changed ? done : `nothing to do: ${done}`, { changed });
  const clock = systemClock;

  return new Command('admin')
    .description('Look at accounts, and change what they may do.')
    .addCommand(
      subcommand('users', 'The accounts, by address.', 'users')
        .option('--after <email>', 'begin behind this address; a page has 1000')
        .action(async (flags: UsersFlags) => {
          const page = flags.after === undefined ? {} : { after: flags.after };
          const users = await open(flags, ({ db }) => listUsers({ db }, page));
          say(flags, usersText(users), users);
        }),
    )
    .addCommand(
      subcommand('suspend', 'Close an account: its sessions and tunnels end.', 'suspend alice@example.com')
        .argument('<email>')
        .action(async (email: string, flags: Flags) => {
          const result = await open(flags, ({ db }) => suspend({ db, clock }, consoleOperator(), email));
          sayChange(flags, `${email} is suspended`, result);
        }),
    )
    .addCommand(
      subcommand('restore', 'Open a suspended account again.', 'restore alice@example.com')
        .argument('<email>')
        .action(async (email: string, flags: Flags) => {
          const result = await open(flags, ({ db }) => restore({ db }, consoleOperator(), email));
          sayChange(flags, `${email} is active`, result);
        }),
    )
    .addCommand(
      subcommand('set-plan', 'Give an account another plan.', 'set-plan alice@example.com payg')
        .argument('<email>')
        .argument('<plan>')
        .action(async (email: string, plan: string, flags: Flags) => {
          const result = await open(flags, ({ db }) => setPlan({ db, clock }, consoleOperator(), { email, plan }));
          sayChange(flags, `${email} has plan ${plan}`, result);
        }),
    )
    .addCommand(
      subcommand('set-unlimited', 'Free one key from the tunnel limit of its plan.', 'set-unlimited KEY_ID on')
        .argument('<key-id>')
        .addArgument(new Argument('<state>').choices(['on', 'off']))
        .action(async (keyId: string, state: 'on' | 'off', flags: Flags) => {
          const unlimited = state === 'on';
          const result = await open(flags, ({ db }) => setUnlimited({ db }, consoleOperator(), { keyId, unlimited }));
          sayChange(flags, `key ${keyId} has ${unlimited ? 'no limit' : 'the limit of its plan'}`, result);
        }),
    );
};

const usersText = (users: readonly ListedUser[]): string =>
  users.length === 0
    ? 'no accounts yet'
    : tableText(
        ['EMAIL', 'STATUS', 'PLAN', 'VERIFIED', 'TUNNELS', 'SINCE', 'ID'],
        users.map(({ email, status, plan, emailVerified, openTunnels, createdAt, id }) => [
          email,
          status,
          plan,
          emailVerified ? 'yes' : 'no',
          String(openTunnels),
          createdAt.toISOString().slice(0, 10),
          id,
        ]),
      );
