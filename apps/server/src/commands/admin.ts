// `tunnel-server admin`: commands for the operator to manage accounts, from invitation to deletion. Every change is recorded in the audit
// log.
import {
  createUser,
  deleteUser,
  invite,
  type ListedUser,
  listUsers,
  PasswordHasher,
  restore,
  sendPasswordReset,
  setPlan,
  setUnlimited,
  suspend,
} from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { Argument, Command } from 'commander';
import { consoleOperator, open, sayTo, subcommand } from './database-commands.ts';
import { type JsonFlags, tableText } from './shared.ts';

const clock = systemClock;

interface UsersFlags extends JsonFlags {
  readonly after?: string;
}

export const admin = (finish: (code: number) => void): Command => {
  const say = sayTo(finish);
  const sayChange = (flags: JsonFlags, done: string, { changed }: { readonly changed: boolean }): void =>
    say(flags, changed ? done : `nothing changed: ${done}`, { changed });
  const command = new Command('admin').description('Invite people and manage accounts');
  for (const each of peopleCommands(say)) command.addCommand(each);
  return command
    .addCommand(
      subcommand('users', 'List accounts, sorted by email', 'admin users')
        .option('--after <email>', 'Start after this email (at most 1000 accounts are listed)')
        .action(async (flags: UsersFlags) => {
          const page = flags.after === undefined ? {} : { after: flags.after };
          const users = await open(flags, ({ db }) => listUsers({ db }, page));
          say(flags, usersText(users, flags.after), users);
        }),
    )
    .addCommand(
      subcommand('suspend', 'Suspend an account and close its tunnels', 'admin suspend alice@example.com')
        .argument('<email>')
        .action(async (email: string, flags: JsonFlags) => {
          const result = await open(flags, ({ db }) => suspend({ db, clock }, consoleOperator(), email));
          sayChange(flags, `${email} is suspended`, result);
        }),
    )
    .addCommand(
      subcommand('restore', 'Restore a suspended account', 'admin restore alice@example.com')
        .argument('<email>')
        .action(async (email: string, flags: JsonFlags) => {
          const result = await open(flags, ({ db }) => restore({ db }, consoleOperator(), email));
          sayChange(flags, `${email} is active`, result);
        }),
    )
    .addCommand(
      subcommand('set-plan', 'Change the plan of an account', 'admin set-plan alice@example.com payg')
        .argument('<email>')
        .argument('<plan>')
        .action(async (email: string, plan: string, flags: JsonFlags) => {
          const result = await open(flags, ({ db }) => setPlan({ db, clock }, consoleOperator(), { email, plan }));
          sayChange(flags, `${email} has plan ${plan}`, result);
        }),
    )
    .addCommand(
      subcommand('set-unlimited', 'Lift or restore the tunnel limit of a key', 'admin set-unlimited KEY_ID on')
        .argument('<key-id>')
        .addArgument(new Argument('<state>').choices(['on', 'off']))
        .action(async (keyId: string, state: 'on' | 'off', flags: JsonFlags) => {
          const unlimited = state === 'on';
          const result = await open(flags, ({ db }) => setUnlimited({ db }, consoleOperator(), { keyId, unlimited }));
          sayChange(
            flags,
            `key ${keyId} has ${unlimited ? 'no tunnel limit' : 'the tunnel limit of its plan'}`,
            result,
          );
        }),
    );
};

type Say = ReturnType<typeof sayTo>;

interface CreateFlags extends JsonFlags {
  readonly passwordStdin?: boolean;
}

interface DeleteFlags extends JsonFlags {
  readonly yes?: boolean;
}

const MAIL_NOTE = 'The running server also sends the link by mail.\n';

/** Commands that add and delete accounts. Standard output contains only the link, so that scripts can use the link. */
const peopleCommands = (say: Say): Command[] => [
  subcommand('invite', 'Invite a person by mail; valid for 7 days', 'admin invite alice@example.com')
    .argument('<email>')
    .action(async (email: string, flags: JsonFlags) => {
      const { sent, signUp } = await open(flags, async ({ db }, { platform }) => ({
        sent: await invite({ db, clock, publicUrl: platform.public_url }, consoleOperator(), email),
        signUp: platform.sign_up,
      }));
      if (signUp === 'closed') process.stderr.write('Sign-up is closed: set `[platform] sign_up = "invite"` first.\n');
      process.stderr.write(MAIL_NOTE);
      say(flags, sent.link, { email: sent.email, link: sent.link, expires_at: sent.expiresAt });
    }),
  subcommand('create-user', 'Create an account and send a password link', 'admin create-user alice@example.com')
    .argument('<email>')
    .option('--password-stdin', 'Read the password from standard input; send no link')
    .action(async (email: string, flags: CreateFlags) => {
      const password = flags.passwordStdin === true ? await readLine(process.stdin) : null;
      const made = await open(flags, ({ db }, { platform }) =>
        createUser({ db, clock, publicUrl: platform.public_url, passwords: new PasswordHasher() }, consoleOperator(), {
          email,
          password,
        }),
      );
      if (made.link !== null) process.stderr.write(MAIL_NOTE);
      say(flags, made.link ?? `${made.email} can sign in now`, made);
    }),
  subcommand(
    'reset-password',
    'Send a link for a new password; valid for 1 hour',
    'admin reset-password alice@example.com',
  )
    .argument('<email>')
    .action(async (email: string, flags: JsonFlags) => {
      const sent = await open(flags, ({ db }, { platform }) =>
        sendPasswordReset({ db, clock, publicUrl: platform.public_url }, consoleOperator(), email),
      );
      process.stderr.write(MAIL_NOTE);
      say(flags, sent.link, { email: sent.email, link: sent.link, expires_at: sent.expiresAt });
    }),
  subcommand('delete-user', 'Delete an account and all its data', 'admin delete-user alice@example.com --yes')
    .argument('<email>')
    .option('--yes', 'Confirm the deletion')
    .action(async (email: string, flags: DeleteFlags, command: Command) => {
      if (flags.yes !== true) command.error('error: Add --yes to confirm.');
      await open(flags, ({ db }) => deleteUser({ db, clock }, consoleOperator(), email));
      say(flags, `${email} is deleted; the server closes its tunnels and ends its subscription`, { deleted: true });
    }),
];

/** Maximum size of the password input in bytes, longer than any valid password. */
const PASSWORD_INPUT_MAX_BYTES = 4096;

/**
 * Reads the first line of piped or typed input. Does not wait for the end of the input, because users at a terminal do not expect to
 * press Ctrl-D.
 */
const readLine = async (input: AsyncIterable<Buffer | string>): Promise<string> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of input) {
    const chunk = Buffer.from(part);
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes > PASSWORD_INPUT_MAX_BYTES || chunk.includes('\n')) break;
  }
  return Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n.*$/s, '');
};

const usersText = (users: readonly ListedUser[], after: string | undefined): string => {
  if (users.length === 0) return after === undefined ? 'no accounts yet' : `no accounts after ${after}`;
  return tableText(
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
};
