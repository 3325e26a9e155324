// Sign-in page. After signing in, the user continues on the page that was requested.
import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Credentials } from '@tunnel/contract';
import { useApp, useSessionState } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { PasswordField, TextField } from '../../ui/field.tsx';
import { isFault } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';
import { AuthCard, AuthForm, TextLink, useFromLink, useLeaveWhenSignedIn } from './layout.tsx';

const route = getRouteApi('/signed-out/login');

export const LoginPage = () => {
  const { api, session } = useApp();
  const { next, email } = route.useSearch();
  // Prefills the email address for users who came from the link in a verification email.
  const known = useFromLink('email', email);
  useLeaveWhenSignedIn(next);
  const login = useMutation({
    mutationFn: (body: Credentials) => api.logIn(body),
    onSuccess: ({ body }) => session.signIn(body.access_token),
  });
  const { error, variables } = login;
  const wrong = isFault(error, 'LOGIN_WRONG') ? problemText(error) : fieldProblem(error, 'password');
  const noAddress = fieldProblem(error, 'email');
  return (
    <AuthCard
      title="Sign in"
      below={
        <>
          New here? <TextLink to="/signup">Create an account</TextLink>
        </>
      }
    >
      {error === null && <WhyHere hasNext={next !== undefined} />}
      <AuthForm
        action="Sign in"
        error={error}
        atField={wrong !== null || noAddress !== null}
        remedy={
          isFault(error, 'ACCOUNT_UNVERIFIED') && (
            <TextLink to="/check-mail" state={{ email: variables?.email ?? '' }}>
              Resend email
            </TextLink>
          )
        }
        pending={login.isPending || login.isSuccess}
        onSubmit={(field) => login.mutate({ email: field('email'), password: field('password') })}
      >
        <TextField
          label="Email"
          name="email"
          type="email"
          autoComplete="username"
          required
          defaultValue={known}
          error={noAddress}
        />
        <PasswordField
          label="Password"
          name="password"
          autoComplete="current-password"
          required
          error={wrong}
          aside={<TextLink to="/forgot">Forgot password?</TextLink>}
        />
      </AuthForm>
    </AuthCard>
  );
};

const WhyHere = ({ hasNext }: { readonly hasNext: boolean }) => {
  const state = useSessionState();
  if (state.phase !== 'signed-out') return null;
  if (state.reason === 'ended') return <Notice live>Your session has ended. Sign in to continue.</Notice>;
  if (state.reason === 'deleted') return <Notice live>Your account has been deleted.</Notice>;
  if (state.reason === 'left') return <Notice live>You're signed out.</Notice>;
  return hasNext ? <Notice>Sign in to continue.</Notice> : null;
};
