// API keys in the platform API: how they are listed, made and shown once.
import * as z from 'zod';

const count = z.int().min(0);

export const apiToken = z
  .object({
    id: z.string().meta({ examples: ['0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11'] }),
    label: z.string().meta({ description: 'What its owner calls it.', examples: ['laptop'] }),
    token_hash: z.string().meta({
      description: 'SHA-256 of the key in hex. The key itself is not stored.',
      examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
    }),
    created_at: z.iso.datetime(),
    last_used_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'When a client last connected or opened a tunnel with it, to the minute; null: never.' }),
    scope: z
      .string()
      .nullable()
      .meta({ description: 'null in this version.', examples: [null] }),
    tier: z
      .string()
      .nullable()
      .meta({ description: 'The plan of the account.', examples: ['free'] }),
    tunnel_limit: count
      .nullable()
      .meta({ description: 'Tunnels at once, of all keys of the account together; null: no limit.', examples: [3] }),
    status: z.string().meta({ description: '`active`; revoked keys are not listed.', examples: ['active'] }),
    unlimited: z.boolean().meta({ description: 'The tunnel limit does not hold for it: an operator said so.' }),
    tunnel_count: count.meta({ description: 'Tunnels ever registered with it.' }),
    active_tunnels: count.optional().meta({
      description:
        'Tunnels that are open with it right now: those that revoking it would close. Absent from platforms that do not tell.',
    }),
  })
  .meta({ id: 'ApiToken', description: 'An API key as it is listed.' });
export type ApiToken = z.infer<typeof apiToken>;

export const apiTokens = z.array(apiToken);

export const KEY_LABEL_MAX_CHARACTERS = 100;

const LABEL_RULE = `must have 1 to ${KEY_LABEL_MAX_CHARACTERS} characters`;

export const newKey = z
  .object({
    label: z
      .string()
      .trim()
      // Characters as people count them, and as JSON Schema does.
      .refine((label) => label !== '' && [...label].length <= KEY_LABEL_MAX_CHARACTERS, { error: LABEL_RULE })
      .meta({
        description: 'For you to tell your keys apart. Spaces around it are dropped.',
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
      description: 'The key. It is in this answer and never in another one.',
      examples: ['tnl_4fK2mQ9xVbT7RsLpZ0aE8cYh3dUi6nWo1bGjXy'],
    }),
  })
  .meta({ id: 'CreatedKey' });
export type CreatedKey = z.infer<typeof createdKey>;
