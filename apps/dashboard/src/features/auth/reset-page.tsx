// Page to choose a new password, opened from the link in the password reset email.
import { useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useApi } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { buttonClass } from '../../ui/button.tsx';
import { isFault } from '../../ui/problem.tsx';
import { fieldProblem } from '../../ui/problem-text.ts';
import { AuthCard, AuthForm, NewPasswordField, TextLink, useLinkToken } from './layout.tsx';

const route = getRouteApi('/signed-out/reset-password');

export const ResetPage = () => {
  const api = useApi();
  const token = useLinkToken(route.useSearch().token);
  const reset = useMutation({ mutationFn: (password: string) => api.resetPassword({ token, password }) });
  const { data, error } = reset;
  const atPassword = fieldProblem(error, 'password');
  if (data !== undefined) {
    return (
      <AuthCard key="done" title="Password changed">
        <Notice tone="good" live>
          You're signed out everywhere. Sign in with your new password.
        </Notice>
        <Link to="/login" className={buttonClass('primary', 'medium', 'h-10! w-full')}>
          Sign in
        </Link>
      </AuthCard>
    );
  }
  return (
    <AuthCard title="Choose a new password" below={<TextLink to="/login">Back to sign in</TextLink>}>
      <AuthForm
        action="Change password"
        error={error}
        atField={atPassword !== null}
        remedy={isFault(error, 'MAIL_TOKEN_INVALID') && <TextLink to="/forgot">Get a new link</TextLink>}
        pending={reset.isPending}
        onSubmit={(field) => reset.mutate(field('password'))}
      >
        <NewPasswordField label="New password" error={atPassword} />
      </AuthForm>
    </AuthCard>
  );
};
