// Schemas of API keys in the platform API. The full key is returned only once, when it is created.
import * as z from 'zod';

const count = z.int().min(0);

export const apiToken = z
  .object({
    id: z.string().meta({ examples: ['0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11'] }),
    label: z.string().meta({ description: 'The label of the key.', examples: ['laptop'] }),
    token_hash: z.string().meta({
      description: 'The SHA-256 hash of the key in hex. The key is not stored.',
      examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
    }),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable().meta({
      description:
        'The last time a client used the key to connect or to open a tunnel, to the minute. Null if the key was never used.',
    }),
    scope: z
      .string()
      .nullable()
      .meta({ description: 'Reserved; always null.', examples: [null] }),
    tier: z
      .string()
      .nullable()
      .meta({ description: 'The plan of the account.', examples: ['free'] }),
    tunnel_limit: count.nullable().meta({
      description: 'The maximum number of open tunnels for the whole account, or null if unlimited.',
      examples: [3],
    }),
    status: z.string().meta({ description: 'Always `active`: revoked keys are not listed.', examples: ['active'] }),
    unlimited: z.boolean().meta({ description: 'True if the operator exempted the key from the tunnel limit.' }),
    tunnel_count: count.meta({ description: 'The number of tunnels ever opened with the key.' }),
    active_tunnels: count.optional().meta({
      description:
        'The number of tunnels open with the key right now. Revoking the key closes these tunnels. Omitted by older platforms.',
    }),
  })
  .meta({ id: 'ApiToken', description: 'An API key, without the secret.' });
export type ApiToken = z.infer<typeof apiToken>;

export const apiTokens = z.array(apiToken);

export const KEY_LABEL_MAX_CHARACTERS = 100;

const LABEL_RULE = `must have 1 to ${KEY_LABEL_MAX_CHARACTERS} characters`;

export const newKey = z
  .object({
    label: z
      .string()
      .trim()
      // Counts code points, as users and JSON Schema do, instead of UTF-16 units.
      .refine((label) => label !== '' && [...label].length <= KEY_LABEL_MAX_CHARACTERS, { error: LABEL_RULE })
      .meta({
        description: 'A label for the key. Surrounding spaces are trimmed.',
        minLength: 1,
        maxLength: KEY_LABEL_MAX_CHARACTERS,
        pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$',
        examples: ['laptop'],
      }),
  })
  .meta({ id: 'NewKey' });
export type NewKey = z.infer<typeof newKey>;

export const createdKey = z
  .object({
    id: z.string().meta({ examples: ['0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11'] }),
    token: z.string().meta({
      description: 'The API key. Only shown in the response to the request that created the key.',
      examples: ['tnl_4fK2mQ9xVbT7RsLpZ0aE8cYh3dUi6nWo1bGjXy'],
    }),
  })
  .meta({ id: 'CreatedKey' });
export type CreatedKey = z.infer<typeof createdKey>;
