// Log in, and go on where one was.
import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Credentials } from '@tunnel/contract';
import { useApp, useSessionState } from '../../app/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { PasswordField, TextField } from '../../ui/field.tsx';
import { isFault } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';
import { AuthCard, AuthForm, TextLink, useLeaveWhenSignedIn } from './layout.tsx';

const route = getRouteApi('/signed-out/login');

export const LoginPage = () => {
  const { api, session } = useApp();
  const { next } = route.useSearch();
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
      title="Log in"
      below={
        <>
          New here? <TextLink to="/signup">Create an account</TextLink>
        </>
      }
    >
      {error === null && <WhyHere hasNext={next !== undefined} />}
      <AuthForm
        action="Log in"
        error={error}
        atField={wrong !== null || noAddress !== null}
        remedy={
          isFault(error, 'ACCOUNT_UNVERIFIED') && (
            <TextLink to="/check-mail" state={{ email: variables?.email ?? '' }}>
              Send the mail again
            </TextLink>
          )
        }
        pending={login.isPending || login.isSuccess}
        onSubmit={(field) => login.mutate({ email: field('email'), password: field('password') })}
      >
        <TextField label="E-mail" name="email" type="email" autoComplete="username" required error={noAddress} />
        <PasswordField
          label="Password"
          name="password"
          autoComplete="current-password"
          required
          error={wrong}
          aside={<TextLink to="/forgot">Forgot it?</TextLink>}
        />
      </AuthForm>
    </AuthCard>
  );
};

const WhyHere = ({ hasNext }: { readonly hasNext: boolean }) => {
  const state = useSessionState();
  if (state.phase !== 'signed-out') return null;
  if (state.reason === 'ended') return <Notice live>Your session has ended. Log in to go on.</Notice>;
  if (state.reason === 'left') return <Notice live>You are logged out.</Notice>;
  return hasNext ? <Notice>Log in to go on.</Notice> : null;
};
