// Sign-up page. Depending on the server's settings, sign-up is open, by invitation, or closed.
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { Registration, SignUpTerms } from '@tunnel/contract';
import { useApi, useApp } from '../../api/app-context.tsx';
import { buttonClass } from '../../ui/button.tsx';
import { SkeletonLines } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { isFault } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';
import { AuthCard, AuthForm, NewPasswordField, TextLink, useFromLink, useLeaveWhenSignedIn } from './layout.tsx';

const route = getRouteApi('/signed-out/signup');

export const SignupPage = () => {
  const api = useApi();
  const invite = useFromLink('invite', route.useSearch().invite);
  useLeaveWhenSignedIn();
  const terms = useQuery({
    queryKey: ['sign-up', invite],
    queryFn: () => api.signUpTerms(invite === '' ? undefined : invite),
    retry: false,
  });
  if (terms.isPending) return <Pending />;
  // If the sign-up settings cannot be loaded, the form is shown. The platform rejects a sign-up that is not allowed.
  const { sign_up: mode, invite_valid: isInvited, invited_email: invited } = terms.data ?? OPEN;
  if (mode === 'closed')
    return <NoSignup title="Sign-up is closed" text="Ask the operator of this server for an account." />;
  if (mode === 'invite' && !isInvited) return invite === '' ? <NeedsInvite /> : <InviteSpent />;
  return <SignupForm invite={isInvited ? invite : ''} invited={invited} />;
};

const OPEN: SignUpTerms = { sign_up: 'open', invite_valid: false, invited_email: null };

const BELOW = (
  <>
    Have an account? <TextLink to="/login">Sign in</TextLink>
  </>
);

const Pending = () => (
  <AuthCard title="Create an account" description="Put localhost online in seconds." below={BELOW}>
    <SkeletonLines count={6} />
  </AuthCard>
);

const NeedsInvite = () => (
  <NoSignup
    title="Sign-up is by invitation"
    text="Open the link in your invitation email, or ask the operator of this server for an invitation."
  />
);

const InviteSpent = () => (
  <NoSignup
    title="This invitation is no longer valid"
    text="The invitation has expired or was already used. Ask the sender for a new invitation."
  />
);

const NoSignup = ({ title, text }: { readonly title: string; readonly text: string }) => (
  <AuthCard key={title} title={title} description={text}>
    <Link to="/login" className={buttonClass('primary', 'medium', 'h-10! w-full')}>
      Sign in
    </Link>
  </AuthCard>
);

interface SignupFormProps {
  /** Token of the invitation. Empty without an invitation. */
  readonly invite: string;
  /** Email address for which the invitation was issued. Null if the invitation works for every address. */
  readonly invited: string | null;
}

const SignupForm = ({ invite, invited }: SignupFormProps) => {
  const signup = useSignup();
  const { error } = signup;
  const atEmail = isFault(error, 'ACCOUNT_EXISTS') ? problemText(error) : fieldProblem(error, 'email');
  const atName = fieldProblem(error, 'display_name');
  const atPassword = fieldProblem(error, 'password');
  return (
    <AuthCard key="form" title="Create an account" description="Put localhost online in seconds." below={BELOW}>
      <AuthForm
        action="Create account"
        error={error}
        atField={[atEmail, atName, atPassword].some((text) => text !== null)}
        pending={signup.isPending || signup.isSuccess}
        onSubmit={(field) =>
          signup.mutate({
            email: invited ?? field('email'),
            password: field('password'),
            display_name: field('name'),
            ...(invite === '' ? {} : { invite }),
          })
        }
      >
        <TextField label="Name" name="name" autoComplete="name" hint="Optional" error={atName} />
        <TextField
          label="Email"
          name="email"
          type="email"
          autoComplete="email"
          required
          error={atEmail}
          {...(invited === null ? {} : { value: invited, readOnly: true, hint: 'Your invitation is for this address' })}
        />
        <NewPasswordField label="Password" error={atPassword} />
      </AuthForm>
    </AuthCard>
  );
};

/**
 * Creates the account. An invitation proves the email address, so an invited user is signed in immediately. Other users have to verify
 * their email address first.
 */
const useSignup = () => {
  const { api, session } = useApp();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: async (body: Registration) => {
      const { email_verified: isVerified } = await api.register(body);
      const email = body.email.trim();
      if (isVerified !== true) return navigate({ to: '/check-mail', state: { email } });
      try {
        session.signIn((await api.logIn({ email, password: body.password })).body.access_token);
      } catch {
        // The account exists even if signing in fails, so the user continues on the sign-in page.
        await navigate({ to: '/login', state: { email } });
      }
    },
  });
};
