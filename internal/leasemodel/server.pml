/* What the server does, and what becomes of requests. Part of lease.pml. */

#define KEY(g) (gk[g]*512+gn[g]*16+gf[g]*8+gm[g])
inline swap(p,q) {
  if
  :: KEY(p) > KEY(q) ->
     x=gk[p]; gk[p]=gk[q]; gk[q]=x;  x=gn[p]; gn[p]=gn[q]; gn[q]=x;
     x=gf[p]; gf[p]=gf[q]; gf[q]=x;  x=gm[p]; gm[p]=gm[q]; gm[q]=x;
#ifdef WRITES
     x=gt[p]; gt[p]=gt[q]; gt[q]=x;
#endif
  :: else
  fi
}
inline sort() {
#if G==2
  swap(0,1)
#elif G==3
  swap(0,1); swap(1,2); swap(0,1)
#else
  skip
#endif
}
inline clr(g) { gk[g]=0; gn[g]=0; gf[g]=0; gm[g]=0;
#ifdef WRITES
  gt[g]=0;
#endif
}
#ifdef TWIN_RENEW_ANY
#define GREN(a) (gk[a]==99)
#else
#define GREN(a) (gk[a]==REN)
#endif
/* ghosts that can never do anything again are forgotten */
inline gc() {
  for (a : 0 .. G-1) {
    if
    :: (GREN(a) || gk[a]==REL) && !gf[a] -> clr(a)
#ifndef TWIN_RENEW_ANY
    :: (gk[a]==REN || gk[a]==REL || gk[a]==RELN) && gn[a]>N && rh!=gn[a] ->
       x=0;
       for (b : 0 .. G-1) { if :: gk[b]==ACQ && gn[b]==gn[a] -> x=1 :: else fi }
       if :: !x -> clr(a) :: else fi
#endif
    :: else
    fi
  }
  sort();
}
inline addg(k,n,f,m,t) { /* needs gk[0]==0 */
  gk[0]=k; gn[0]=n; gf[0]=f; gm[0]=m;
#ifdef WRITES
  gt[0]=t;
#endif
  sort();
}
#ifndef ANYCLOCK
/* PAST: so long ago that no jump left can bring it back */
#define PAST (-99)
#if JUMPS>0
#define LOWNOW ((JUMPS-jumps)*JA)
#else
#define LOWNOW 0
#endif
inline sat() {
  if :: exp <= -LOWNOW -> exp = PAST :: else fi;
  if :: nb <= -LOWNOW -> nb = PAST :: else fi;
  if :: aqd < -LOWNOW-MINHOLD -> aqd = -LOWNOW-MINHOLD :: else fi;
  if :: rh==0 && nb==PAST -> aqd=0 :: else fi
}
inline srv(d) {
  if :: d!=1 -> printf("CLOCK JUMPS %d\n",d) :: else fi;
  if :: exp!=PAST -> exp=exp-(d) :: else fi;
  if :: nb!=PAST -> nb=nb-(d) :: else fi;
  aqd=aqd-(d); sat()
}
#endif
/* any write: seq+1 */
inline changed() {
  for (a : 0 .. N-1) {
    obsv[a]=0; obsage[a]=0; qsv[a]=0;
    if :: qk[a]==ACQ && qst[a]==1 -> qf[a]=0; qmay[a]=0 :: else fi
  }
  for (a : 0 .. G-1) { if :: gk[a]==ACQ -> gf[a]=0; gm[a]=0 :: else fi }
#ifdef CALM
  since=0;
#endif
}
/* token+1 */
inline newterm() {
  for (a : 0 .. N-1) { tm[a]=0; qf[a]=0 }
  for (a : 0 .. G-1) { gf[a]=0 }
#ifdef WRITES
  rtok++;
#endif
}
/* worker i will never use its holder value again */
inline dropnonce(i) {
  o=0; if :: rh==i+1 -> o=1 :: else fi;
  for (a : 0 .. G-1) { if :: gk[a]!=0 && gn[a]==i+1 -> o=1 :: else fi }
  if
  :: o -> o=N+1;
     do
     :: x=0; if :: rh==o -> x=1 :: else fi;
        for (a : 0 .. G-1) { if :: gk[a]!=0 && gn[a]==o -> x=1 :: else fi }
        if :: x -> o++ :: else -> break fi
     od;
     if :: rh==i+1 -> rh=o :: else fi;
     for (a : 0 .. G-1) { if :: gk[a]!=0 && gn[a]==i+1 -> gn[a]=o :: else fi }
     gc()
  :: else
  fi;
  tm[i]=0;
#ifdef WRITES
  wtok[i]=0;
#endif
  o=0; x=0; a=0; b=0;
}
inline freeq(i) { qst[i]=0; qk[i]=0; qf[i]=0; qsv[i]=0; qmay[i]=0; qage[i]=0 }

#ifdef ANYCLOCK
#define NBOK true
#define SETEXP skip
#else
#ifdef TWIN_TRUST_NOT_BEFORE
#define NBOK (nb<=0)
#else
#define NBOK (nb<=0 || aqd>0)
#endif
#define SETEXP exp=TTL
#endif
#ifdef WRITES
#define TOKLEFT (rtok<MAXTOK)
#else
#define TOKLEFT true
#endif

inline doacq(n,cas,may,ex) {
  ok=0;
  if
  :: !TOKLEFT
  :: TOKLEFT && rh==0 && NBOK -> ok=1
#ifdef TWIN_NO_OBSERVATION
  :: TOKLEFT && rh!=0 && rh!=n && NBOK && ex -> ok=1
#else
  :: TOKLEFT && rh!=0 && rh!=n && NBOK && cas && ((may>=1 && ex) || may==2) -> ok=1
#endif
  :: else
  fi;
  if
  :: ok -> changed(); newterm(); rh=n;
#ifndef ANYCLOCK
     exp=TTL; aqd=0;
#ifndef TWIN_KEEP_NOT_BEFORE
     nb=PAST;
#endif
     skip;
#endif
  :: else
  fi
}
inline doren(n,f) {
  ok=0;
  if
#ifdef TWIN_RENEW_ANY
  :: rh!=0 -> ok=1
#else
  :: rh==n && f -> ok=1
#endif
  :: else
  fi;
  if :: ok -> changed(); SETEXP :: else fi
}
inline dorel(n,f,min) {
  if
  :: rh==n && f -> changed(); rh=0;
#ifndef ANYCLOCK
     if :: min && MINHOLD>0 && aqd+MINHOLD>nb -> nb=aqd+MINHOLD :: else fi;
     exp=PAST; sat();
#endif
     skip
  :: else
  fi
}
/* the server executes the request that worker i waits for; ex: expired by the server's clock */
inline execq(i,ex) {
  if
  :: qk[i]==ACQ ->
     doacq(i+1, qf[i], qmay[i], ex);
     if
     :: ok -> qst[i]=2; qf[i]=1
     :: else -> qsv[i]=1; qmay[i]=0;
        if :: rh==i+1 -> qst[i]=4; qf[i]=1 :: else -> qst[i]=3; qf[i]=0 fi
     fi
  :: else ->
     doren(i+1, qf[i]);
     qst[i]=(ok -> 2 : 3)
  fi;
  printf("  server does W%d's request kind %d: %d (2 done, 3 no row, 4 own); expired=%d; holder now %d\n",i,qk[i],qst[i],ex,rh);
  gc(); ok=0; a=0; b=0; x=0;
}
inline execg(g,ex) {
  a=gk[g]; b=gn[g]; printf("  server does ghost kind %d of holder value %d (row's holder %d)\n",a,b,rh);
  if
  :: a==ACQ -> x=gm[g]; o=gf[g]; clr(g); tr=b; doacq(tr, o, x, ex)
  :: a==REN -> o=gf[g]; clr(g); tr=b; doren(tr, o)
  :: a==REL -> o=gf[g]; clr(g); tr=b; dorel(tr, o, 1)
  :: a==RELN -> clr(g); tr=b; dorel(tr, 1, 0)
#ifdef WRITES
  :: a==WR -> o=gf[g]; x=gt[g]; tr=b; clr(g);
     if
#ifdef TWIN_NO_GUARD
     :: true ->
#else
     :: rh==tr && o ->
#endif
        changed();
        assert(o==0 || x==rtok || o==1);
        assert(x==rtok);       /* P2: only under the current token */
        assert(x>=lastw);      /* P2: in token order */
        lastw=x
#ifndef TWIN_NO_GUARD
     :: else
#endif
     fi
  :: a==DDL -> o=gm[g]; clr(g);
#ifdef LIMIT_UNGUARDED
     for (a : 0 .. N-1) { assert(a==o || trust[a]==0) }   /* the known limit */
#endif
#endif
  fi;
  gc(); a=0; b=0; o=0; x=0; ok=0; tr=0;
}
