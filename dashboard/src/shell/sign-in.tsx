/** The door: the admin token opens a session of this browser. */
import { useEffect, useRef, useState, type FormEvent, type ReactElement } from 'react';
import { useSignIn } from '../api/session.ts';
import { endLeaving } from '../api/sign-out.ts';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { ErrorPanel } from '../components/state.tsx';
import styles from './sign-in.module.css';

export function SignIn(): ReactElement {
  const [token, setToken] = useState('');
  const signIn = useSignIn();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  // After a sign-out: whatever page might have asked is gone.
  useEffect(endLeaving, []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const given = token.trim();
    if (given !== '' && !signIn.isPending) signIn.mutate(given);
  };
  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={submit}>
        <div className={styles.title}>
          <img src="/icon.svg" alt="" />
          <h1>Model Gateway</h1>
        </div>
        {/* For password managers: the token has no user name of its own. */}
        <input type="text" name="username" autoComplete="username" value="admin" readOnly hidden />
        <TextField
          label="Admin token"
          type="password"
          autoComplete="current-password"
          required
          ref={field}
          value={token}
          onChange={setToken}
          hint="The gateway printed it at its first start, or it was set in MODEL_GATEWAY_ADMIN_TOKEN. If it is lost, set a new one in that variable and restart the gateway."
        />
        {signIn.error === null ? null : <ErrorPanel error={signIn.error} />}
        <Button look="primary" type="submit" busy={signIn.isPending}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
