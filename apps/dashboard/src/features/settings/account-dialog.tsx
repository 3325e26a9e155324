// Dialog for an account change that must be confirmed with the password. Contains the form fields, the error message, and buttons to
// submit or cancel.
import { type ReactNode, useId } from 'react';
import { Button, type ButtonKind } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { PasswordField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
import { isFault, Problem } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';

export interface AccountDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** Label of the submit button: a verb. */
  readonly action: string;
  readonly kind?: ButtonKind;
  readonly pending: boolean;
  readonly error: unknown;
  /** True if the error is shown at a field of the caller, so that the dialog does not repeat the error. */
  readonly atField?: boolean;
  readonly onSubmit: (field: (name: string) => string) => void;
  /** Explanation of the consequences, shown above the password field. */
  readonly children?: ReactNode;
  /** Additional form fields, shown below the password field. */
  readonly more?: ReactNode;
}

/** Form name of the password field. The API calls the field `current_password` or `password`, depending on the request. */
export const CURRENT_PASSWORD = 'current_password';

export const AccountDialog = ({
  open,
  onClose,
  title,
  action,
  kind = 'primary',
  pending,
  error,
  atField = false,
  onSubmit,
  children,
  more,
}: AccountDialogProps) => {
  const form = useId();
  const atPassword = isFault(error, 'PASSWORD_WRONG')
    ? problemText(error)
    : (fieldProblem(error, CURRENT_PASSWORD) ?? fieldProblem(error, 'password'));
  return (
    <Dialog
      open={open}
      onClose={onClose}
      // The dialog cannot be closed while the request is being sent, because closing would not cancel the request.
      dismissable={!pending}
      title={title}
      footer={
        <>
          <Button disabled={pending} onClick={onClose}>
            Cancel
          </Button>
          <Button kind={kind} type="submit" form={form} pending={pending}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      <FieldsForm {...{ id: form, error, pending, onSubmit }} className="space-y-4">
        <PasswordField
          label="Current password"
          name={CURRENT_PASSWORD}
          autoComplete="current-password"
          required
          error={atPassword}
        />
        {more}
      </FieldsForm>
      {error != null && atPassword === null && !atField && <Problem error={error} />}
    </Dialog>
  );
};
