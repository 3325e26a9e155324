// Every endpoint that takes a JSON body, a body that it accepts, and what is wrong with others.

export interface BodyField {
  readonly name: string;
  readonly required: boolean;
  /** null is among its values. */
  readonly nullable?: boolean;
  /** Not just any text. */
  readonly wrong?: readonly string[];
}

export interface BodyEndpoint {
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly fields: readonly BodyField[];
  /** Its answer to a good body that changes nothing for others. */
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
    // Read and understood: it is the token that is nobody's.
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
  // Read and understood: it is the password that is wrong.
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
