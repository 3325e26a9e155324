// Every endpoint that takes a JSON body, with an accepted body and rejected values.

export interface BodyField {
  readonly name: string;
  readonly required: boolean;
  /** Whether null is an allowed value. */
  readonly nullable?: boolean;
  /** Texts that the field rejects, if it does not accept every text. */
  readonly wrong?: readonly string[];
}

export interface BodyEndpoint {
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly fields: readonly BodyField[];
  /** Returns a valid body that changes nothing for other tests. */
  readonly good: () => Readonly<Record<string, unknown>>;
  readonly goodStatus: number;
  readonly needsUser: boolean;
}

const email: BodyField = { name: 'email', required: true };
const chosenEmail = {
  ...email,
  wrong: ['', 'nobody', 'a@', '@b', 'a b@c.de', 'a@b@c', 'ä@example.com', '\u212aate@example.com', 'a@b\r\nbcc:c@d'],
};
const password: BodyField = { name: 'password', required: true };
const chosenPassword = { ...password, wrong: ['', '1234567', '😀'.repeat(7), 'a'.repeat(1025), 'é'.repeat(513)] };
const displayName: BodyField = { name: 'display_name', required: false, nullable: true, wrong: ['a'.repeat(101)] };

let made = 0;
const fresh = (): string => {
  made += 1;
  return `body-${made}@example.com`;
};

const PASSWORD = 'long enough';
const NO_TOKEN = 'x'.repeat(43);
const auth = (path: string) => ({ method: 'POST', path: `/auth/${path}`, needsUser: false }) as const;

export const BODY_ENDPOINTS: readonly BodyEndpoint[] = [
  {
    ...auth('register'),
    fields: [chosenEmail, chosenPassword, displayName],
    good: () => ({ email: fresh(), password: PASSWORD, display_name: null }),
    goodStatus: 201,
  },
  {
    ...auth('login'),
    fields: [email, password],
    good: () => ({ email: fresh(), password: PASSWORD }),
    goodStatus: 401,
  },
  { ...auth('forgot-password'), fields: [email], good: () => ({ email: fresh() }), goodStatus: 200 },
  { ...auth('resend-verification'), fields: [email], good: () => ({ email: fresh() }), goodStatus: 200 },
  {
    ...auth('reset-password'),
    fields: [{ name: 'token', required: true }, chosenPassword],
    good: () => ({ token: NO_TOKEN, password: PASSWORD }),
    // The body is accepted; the status comes from the unknown token.
    goodStatus: 400,
  },
  {
    method: 'PATCH',
    path: '/auth/me',
    needsUser: true,
    fields: [{ ...displayName, required: true }],
    good: () => ({ display_name: 'Ann' }),
    goodStatus: 200,
  },
  // The body is accepted; the status comes from the wrong password.
  {
    method: 'POST',
    path: '/auth/password',
    needsUser: true,
    fields: [
      { ...password, name: 'current_password' },
      { ...chosenPassword, name: 'new_password' },
    ],
    good: () => ({ current_password: 'not the one', new_password: PASSWORD }),
    goodStatus: 401,
  },
  {
    method: 'POST',
    path: '/auth/email',
    needsUser: true,
    fields: [password, { ...chosenEmail, name: 'new_email' }],
    good: () => ({ password: 'not the one', new_email: fresh() }),
    goodStatus: 401,
  },
  {
    method: 'DELETE',
    path: '/auth/me',
    needsUser: true,
    fields: [password],
    good: () => ({ password: 'not the one' }),
    goodStatus: 401,
  },
  {
    method: 'POST',
    path: '/keys',
    needsUser: true,
    fields: [{ name: 'label', required: true, wrong: ['', '  ', 'a'.repeat(101)] }],
    good: () => ({ label: 'laptop' }),
    goodStatus: 201,
  },
];
