/** The door: a person by OpenID Connect, or the admin token, opens a session of this browser. */
import { useEffect, useRef, useState, type FormEvent, type ReactElement } from 'react';
import { type Session, useSignIn } from '../api/session.ts';
import { endLeaving } from '../api/sign-out.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { ErrorPanel } from '../components/state.tsx';
import styles from './sign-in.module.css';
import { keepAddress } from './wanted-address.ts';

interface SignInProps {
  readonly provider: Session['sign_in'];
}

export function SignIn({ provider }: SignInProps): ReactElement {
  const [token, setToken] = useState('');
  const signIn = useSignIn();
  const field = useRef<HTMLInputElement>(null);
  const isByToken = provider === null;
  useEffect(() => (isByToken ? field.current?.focus() : undefined), [isByToken]);
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
        {isByToken ? null : (
          <>
            <Failed />
            <ButtonLink href={provider.url} onClick={keepAddress}>
              Sign in with {provider.label}
            </ButtonLink>
            <p className={styles.about}>Or with the admin token:</p>
          </>
        )}
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
        <Button look={isByToken ? 'primary' : 'plain'} type="submit" busy={signIn.isPending}>
          Sign in
        </Button>
      </form>
    </main>
  );
}

/** Why a sign-in by OpenID Connect led back here, and what to do. */
const failures: { readonly [failure: string]: string } = {
  unreachable: 'The identity provider does not answer. Try again, or tell your operator.',
  expired: 'The sign-in took too long or was finished before. Sign in again.',
  denied: 'The identity provider did not let you in.',
  invalid: 'The answer of the identity provider is not valid. Your operator finds why in the log.',
  'no-role': 'You have no role at this gateway. Ask your operator to be put into a group with one.',
  revoked: 'Your access to this gateway was revoked. An owner may restore it.',
  store: 'The store of the gateway does not answer. Try again.',
  failed: 'The gateway failed. Your operator finds why in the log.',
};

function Failed(): ReactElement | null {
  const failure = new URLSearchParams(location.search).get('sign_in') ?? '';
  if (!Object.hasOwn(failures, failure)) return null;
  return (
    <p className={styles.failed} role="alert">
      {failures[failure]}
    </p>
  );
}
