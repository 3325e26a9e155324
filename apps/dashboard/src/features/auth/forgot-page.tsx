// Page that requests a password reset email.
import { useApi } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { TextField } from '../../ui/field.tsx';
import { fieldProblem, sentence } from '../../ui/problem-text.ts';
import { useAskedMail } from './asked-mail.ts';
import { AuthCard, AuthForm, LocalMailHint, TextLink } from './layout.tsx';

export const ForgotPage = () => {
  const api = useApi();
  const ask = useAskedMail((email) => api.forgotPassword(email));
  const atEmail = fieldProblem(ask.error, 'email');
  const below = <TextLink to="/login">Back to sign in</TextLink>;
  if (ask.data !== undefined) {
    return (
      <AuthCard key="sent" title="Check your email" below={below}>
        <Notice tone="good" live>
          {sentence(ask.data.message)}
        </Notice>
        <p className="text-muted">The link works once and expires in one hour.</p>
        <LocalMailHint />
      </AuthCard>
    );
  }
  return (
    <AuthCard
      title="Reset your password"
      description="Enter your email address. We'll send you a link to choose a new password."
      below={below}
    >
      <AuthForm
        action="Send link"
        error={ask.error}
        atField={atEmail !== null}
        pending={ask.isPending}
        onSubmit={(field) => ask.mutate(field('email'))}
      >
        <TextField label="Email" name="email" type="email" autoComplete="username" required error={atEmail} />
      </AuthForm>
    </AuthCard>
  );
};
