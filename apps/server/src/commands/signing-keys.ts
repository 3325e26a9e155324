// `tunnel-server signing-keys`: lists and rotates the keys that sign access tokens, with or without a running server.
import { type ListedSigningKey, listSigningKeys, masterKeySource, rotateSigningKeys } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { openDataDir } from '../data-dir/data-dir.ts';
import { consoleOperator, sayTo, subcommand, withDatabase } from './database-commands.ts';
import { type JsonFlags, loadConfig, tableText } from './shared.ts';

interface RotateFlags extends JsonFlags {
  readonly discardOld?: boolean;
}

export const signingKeys = (finish: (code: number) => void): Command => {
  const say = sayTo(finish);
  return new Command('signing-keys')
    .description('List or rotate the keys that sign access tokens')
    .addCommand(
      subcommand('list', 'List active signing keys', 'signing-keys list').action(async (flags: JsonFlags) => {
        const config = loadConfig(flags, process.env);
        const keys = await withDatabase(config, { prepared: true }, ({ db }) =>
          listSigningKeys({ db, clock: systemClock }),
        );
        say(flags, keysText(keys), keys.map(keyJson));
      }),
    )
    .addCommand(
      subcommand('rotate', 'Switch to a new key; the old key verifies for 1 hour', 'signing-keys rotate')
        .option('--discard-old', 'Invalidate old keys and their access tokens now, after a leak or a lost master key')
        .action(async (flags: RotateFlags) => {
          const config = loadConfig(flags, process.env);
          const source = masterKeySource(config.platform, await openDataDir(config.data_dir));
          const { discardOld = false } = flags;
          const kid = await withDatabase(config, { prepared: true }, ({ db }) =>
            rotateSigningKeys({ db, clock: systemClock }, consoleOperator(), source, { discardOld }),
          );
          say(flags, `${kid} is the new signing key; running platforms use it within 10 s`, { kid });
        }),
    );
};

const statusOf = ({ verifiesUntil }: ListedSigningKey): string => (verifiesUntil === null ? 'signs' : 'verifies');

const keysText = (keys: readonly ListedSigningKey[]): string =>
  keys.length === 0
    ? 'no signing keys yet; the platform creates the first key when it starts'
    : tableText(
        ['ID', 'STATUS', 'SINCE', 'UNTIL'],
        keys.map((key) => [
          key.kid,
          statusOf(key),
          key.createdAt.toISOString(),
          key.verifiesUntil?.toISOString() ?? '-',
        ]),
      );

const keyJson = (key: ListedSigningKey): object => ({
  kid: key.kid,
  status: statusOf(key),
  created_at: key.createdAt,
  verifies_until: key.verifiesUntil,
});
