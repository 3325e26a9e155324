// Create an account; the address is verified by mail.
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Registration } from '@tunnel/contract';
import { useApi } from '../../app/app-context.tsx';
import { PasswordField, TextField } from '../../ui/field.tsx';
import { isFault } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';
import { AuthCard, AuthForm, TextLink, useLeaveWhenSignedIn } from './layout.tsx';

export const SignupPage = () => {
  const api = useApi();
  const navigate = useNavigate();
  useLeaveWhenSignedIn();
  const signup = useMutation({
    mutationFn: (body: Registration) => api.register(body),
    onSuccess: (_answer, { email }) => navigate({ to: '/check-mail', state: { email: email.trim() } }),
  });
  const { error } = signup;
  const atEmail = isFault(error, 'ACCOUNT_EXISTS') ? problemText(error) : fieldProblem(error, 'email');
  const atName = fieldProblem(error, 'display_name');
  const atPassword = fieldProblem(error, 'password');
  const atField = [atEmail, atName, atPassword].some((text) => text !== null);
  return (
    <AuthCard
      title="Create an account"
      description="Publish what runs on your machine under an address of its own."
      below={
        <>
          Have an account? <TextLink to="/login">Log in</TextLink>
        </>
      }
    >
      <AuthForm
        action="Create account"
        error={error}
        atField={atField}
        pending={signup.isPending}
        onSubmit={(field) =>
          signup.mutate({ email: field('email'), password: field('password'), display_name: field('name') })
        }
      >
        <TextField label="Name" name="name" autoComplete="name" hint="Optional. Shown to you alone." error={atName} />
        <TextField label="E-mail" name="email" type="email" autoComplete="email" required error={atEmail} />
        <PasswordField
          label="Password"
          name="password"
          autoComplete="new-password"
          required
          hint="At least 8 characters."
          error={atPassword}
        />
      </AuthForm>
    </AuthCard>
  );
};
