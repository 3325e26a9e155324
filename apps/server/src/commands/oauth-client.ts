// `tunnel-server oauth-client`: manages OAuth apps without a client metadata document. The apps are public clients, so no output is
// secret.
import { createOauthClient, listOauthClients, type RegisteredClient, revokeOauthClient } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { consoleOperator, open, sayTo, subcommand } from './database-commands.ts';
import { type JsonFlags, tableText } from './shared.ts';

const clock = systemClock;

interface CreateFlags extends JsonFlags {
  readonly name: string;
  readonly redirectUri: readonly string[];
}

export const oauthClient = (finish: (code: number) => void): Command => {
  const say = sayTo(finish);
  return new Command('oauth-client')
    .description('Manage OAuth apps without a metadata document')
    .addCommand(
      subcommand(
        'create',
        'Register an app and print its client id',
        'oauth-client create --name "Acme IDE" --redirect-uri https://ide.example.com/callback http://127.0.0.1/callback',
      )
        .requiredOption('--name <name>', 'Name shown to users; verify that it is genuine')
        .requiredOption('--redirect-uri <uri...>', 'Allowed redirect URIs: https, or http on localhost with any port')
        .action(async (flags: CreateFlags) => {
          const { name, redirectUri: redirectUris } = flags;
          const client = await open(flags, ({ db }) =>
            createOauthClient({ db, clock }, consoleOperator(), { name, redirectUris }),
          );
          say(flags, client.id, jsonOf(client));
        }),
    )
    .addCommand(
      subcommand('list', 'List registered apps', 'oauth-client list').action(async (flags: JsonFlags) => {
        const clients = await open(flags, ({ db }) => listOauthClients({ db }));
        say(flags, clientsText(clients), clients.map(jsonOf));
      }),
    )
    .addCommand(
      subcommand(
        'revoke',
        'Revoke an app and all access granted by users',
        'oauth-client revoke client_4fK2mQ9xVbT7RsLpZ0aE',
      )
        .argument('<id>', 'Client id of the app')
        .action(async (id: string, flags: JsonFlags) => {
          const { name, grantsEnded } = await open(flags, ({ db }) =>
            revokeOauthClient({ db, clock }, consoleOperator(), id),
          );
          const ended = `${grantsEnded} ${grantsEnded === 1 ? 'grant' : 'grants'} ended`;
          say(flags, `revoked: ${name} (${id}), ${ended}`, { client_id: id, name, grants_ended: grantsEnded });
        }),
    );
};

const jsonOf = ({ id, name, redirectUris, createdAt, revokedAt }: RegisteredClient): object => ({
  client_id: id,
  name,
  redirect_uris: redirectUris,
  created_at: createdAt,
  revoked_at: revokedAt,
});

const clientsText = (clients: readonly RegisteredClient[]): string =>
  clients.length === 0
    ? 'no registered apps; apps with a metadata document do not need to be registered'
    : tableText(
        ['NAME', 'STATUS', 'SINCE', 'CLIENT ID', 'REDIRECT URIS'],
        clients.map(({ id, name, redirectUris, createdAt, revokedAt }) => [
          name,
          revokedAt === null ? 'active' : 'revoked',
          createdAt.toISOString().slice(0, 10),
          id,
          redirectUris.join(' '),
        ]),
      );
