// Schemas of accounts in the platform API: sign-up, sign-in, the user, sessions, and the keys that sign access tokens.
import * as z from 'zod';

/**
 * Example values for the OpenAPI document. The schemas below only document the limits of addresses and passwords; services enforce the
 * limits and report which rule was violated.
 */
const EMAIL_EXAMPLE = 'ann@example.com';
const PASSWORD_EXAMPLE = 'correct horse battery';
const TOKEN_EXAMPLE = 'q7Jm0ZQ4nK1cXvT2bLr8sYw6eUdHa3fGiPoN5kMx9zE';
const USER_ID_EXAMPLE = '5f0c1a52-8f3e-4c7b-9d2a-1b7e4f6a9c03';
const TIME_EXAMPLE = '2030-01-01T12:00:00.000Z';

export const DISPLAY_NAME_MAX_CHARACTERS = 100;

/** Pattern of text without NUL characters. Requests with a NUL character are always rejected. */
const NO_NUL = '^[^\\u0000]*$';

const newPassword = z.string().meta({
  description: 'The password: at least 8 characters and at most 1024 bytes. Spaces are not trimmed.',
  minLength: 8,
  maxLength: 1024,
  pattern: NO_NUL,
  examples: [PASSWORD_EXAMPLE],
});

const someEmail = z.string().meta({ pattern: NO_NUL, examples: [EMAIL_EXAMPLE] });

const displayName = z
  .string()
  .trim()
  // Counts code points, as users and JSON Schema do, instead of UTF-16 units.
  .refine((name) => [...name].length <= DISPLAY_NAME_MAX_CHARACTERS, {
    error: `must have at most ${DISPLAY_NAME_MAX_CHARACTERS} characters`,
  })
  .transform((name) => (name === '' ? null : name))
  .nullable()
  .meta({
    type: ['string', 'null'],
    description: 'The display name. Surrounding spaces are trimmed; an empty string removes the name.',
    maxLength: DISPLAY_NAME_MAX_CHARACTERS,
    pattern: NO_NUL,
    examples: ['Ann'],
  });

export const registration = z
  .object({
    email: z.string().meta({
      format: 'email',
      description: 'The email address. Trimmed and compared in lower case.',
      maxLength: 254,
      examples: [EMAIL_EXAMPLE],
    }),
    password: newPassword,
    display_name: displayName.optional(),
    invite: z
      .string()
      .meta({
        description:
          'The token from an invitation link, required where sign-up is by invitation. The email address counts as verified.',
        pattern: NO_NUL,
        examples: [TOKEN_EXAMPLE],
      })
      .optional(),
  })
  .meta({ id: 'Registration' });
export type Registration = z.infer<typeof registration>;

export const registered = z
  .object({
    message: z.string().meta({ examples: ['done'] }),
    email_verified: z
      .boolean()
      .meta({
        description: 'True if the invitation verified the email address, so the account can sign in immediately.',
      })
      .optional(),
  })
  .meta({ id: 'Registered' });
export type Registered = z.infer<typeof registered>;

/** Sign-up modes of a platform: open to anyone, by invitation only, or closed. */
export const SIGN_UP_MODES = ['open', 'invite', 'closed'] as const;

export const signUpTerms = z
  .object({
    sign_up: z.enum(SIGN_UP_MODES).meta({
      description:
        'Who can sign up. `open`: anyone. `invite`: people with an invitation. `closed`: new accounts are not accepted.',
      examples: ['open'],
    }),
    invite_valid: z.boolean().meta({ description: 'Whether the given `invite` is valid.', examples: [false] }),
    invited_email: z
      .string()
      .nullable()
      .meta({
        description:
          'The email address the invitation was sent to. Null without a valid invitation, or if the invitation is for any address.',
        examples: [null],
      }),
  })
  .meta({ id: 'SignUpTerms' });
export type SignUpTerms = z.infer<typeof signUpTerms>;

export const credentials = z
  .object({ email: someEmail, password: z.string().meta({ pattern: NO_NUL, examples: [PASSWORD_EXAMPLE] }) })
  .meta({ id: 'Credentials' });
export type Credentials = z.infer<typeof credentials>;

export const emailOnly = z.object({ email: someEmail }).meta({ id: 'EmailOnly' });
export type EmailOnly = z.infer<typeof emailOnly>;

export const passwordReset = z
  .object({
    token: z
      .string()
      .meta({ description: 'The token from the link in the email.', pattern: NO_NUL, examples: [TOKEN_EXAMPLE] }),
    password: newPassword,
  })
  .meta({ id: 'PasswordReset' });
export type PasswordReset = z.infer<typeof passwordReset>;

const currentPassword = z
  .string()
  .meta({ description: 'The current password.', pattern: NO_NUL, examples: [PASSWORD_EXAMPLE] });

export const passwordChange = z
  .object({ current_password: currentPassword, new_password: newPassword })
  .meta({ id: 'PasswordChange' });
export type PasswordChange = z.infer<typeof passwordChange>;

export const emailChange = z
  .object({
    password: currentPassword,
    new_email: z.string().meta({
      format: 'email',
      description: 'The email address. Trimmed and compared in lower case.',
      maxLength: 254,
      examples: [EMAIL_EXAMPLE],
    }),
  })
  .meta({ id: 'EmailChange' });
export type EmailChange = z.infer<typeof emailChange>;

export const accountDeletion = z.object({ password: currentPassword }).meta({ id: 'AccountDeletion' });
export type AccountDeletion = z.infer<typeof accountDeletion>;

export const userChange = z.object({ display_name: displayName }).meta({ id: 'UserChange' });
export type UserChange = z.infer<typeof userChange>;

export const messageBody = z
  .object({ message: z.string().meta({ examples: ['done'] }) })
  .meta({ id: 'Message', description: 'A readable message about the result.' });
export type MessageBody = z.infer<typeof messageBody>;

export const userPublic = z
  .object({
    id: z.uuid().meta({ examples: [USER_ID_EXAMPLE] }),
    email: z.string().meta({ format: 'email', examples: [EMAIL_EXAMPLE] }),
    display_name: z
      .string()
      .nullable()
      .meta({ examples: ['Ann'] }),
    email_verified: z.boolean().meta({ examples: [true] }),
    // The fields `status` and `auth_method` are strings instead of enums, so that today's clients accept values of future servers.
    status: z.string().meta({ description: '`active` or `suspended`.', examples: ['active'] }),
    auth_method: z.string().meta({
      description: 'The sign-in method: `password`, or the name of an external provider.',
      examples: ['password'],
    }),
    created_at: z.iso.datetime().meta({ examples: [TIME_EXAMPLE] }),
  })
  .meta({ id: 'UserPublic' });
export type UserPublic = z.infer<typeof userPublic>;

const accessTokenText = z.string().meta({
  description: 'The access token (a JWT, valid for 15 minutes). Send as `Authorization: Bearer …`.',
  examples: ['eyJhbGciOiJFZERTQSIsImtpZCI6Im…'],
});

export const accessToken = z.object({ access_token: accessTokenText }).meta({ id: 'AccessToken' });
export type AccessToken = z.infer<typeof accessToken>;

export const passwordChanged = z
  .object({
    message: z.string().meta({ examples: ['done'] }),
    access_token: accessTokenText,
    ended_sessions: z
      .number()
      .int()
      .meta({ description: 'The number of other sessions ended.', examples: [2] }),
  })
  .meta({
    id: 'PasswordChanged',
    description: 'The result of a password change. Earlier access tokens are revoked; the returned token is valid.',
  });
export type PasswordChanged = z.infer<typeof passwordChanged>;

export const loggedIn = z.object({ access_token: accessTokenText, user: userPublic }).meta({ id: 'LoggedIn' });
export type LoggedIn = z.infer<typeof loggedIn>;

export const userSession = z
  .object({
    id: z.uuid().meta({ examples: ['c2b6a0de-52a7-4a0f-8a41-7f6d1f0b9e55'] }),
    created_at: z.iso.datetime().meta({ description: 'The time of the sign-in.', examples: [TIME_EXAMPLE] }),
    last_used_at: z.iso
      .datetime()
      .meta({ description: 'The time of the last token refresh.', examples: [TIME_EXAMPLE] }),
    user_agent: z
      .string()
      .meta({ description: 'The user agent at sign-in, or an empty string if unknown.', examples: ['Firefox/140.0'] }),
    address: z.string().meta({ description: 'The last known IP address.', examples: ['203.0.113.7'] }),
    current: z.boolean().meta({ description: 'True for the session that sent the request.' }),
  })
  .meta({ id: 'UserSession', description: 'A signed-in session of the account.' });
export type UserSession = z.infer<typeof userSession>;

export const userSessions = z.array(userSession);

export const publicKeys = z
  .object({
    keys: z.array(
      z.object({
        kty: z.string().meta({ examples: ['OKP'] }),
        crv: z.string().meta({ examples: ['Ed25519'] }),
        x: z.string().meta({ examples: ['11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'] }),
        kid: z.string().meta({ examples: ['sig_3xK9mQ2vTbR7LpZ0aE8c'] }),
        alg: z.string().meta({ examples: ['EdDSA'] }),
        use: z.string().meta({ examples: ['sig'] }),
      }),
    ),
  })
  .meta({ id: 'JsonWebKeys', description: 'The public keys, newest first.' });
export type PublicKeys = z.infer<typeof publicKeys>;
