/* What workers, ghosts, time and an operator do. Part of lease.pml. */

inline granted(i) {
#ifdef TWIN_TRUST_FROM_ANSWER
  tr=TRUST;
#else
  tr=TRUST-qage[i];
#endif
  tm[i]=qf[i];
  if
  :: tr>0 -> trust[i]=tr; ws[i]=2; printf("W%d TRUSTED for %d\n",i,tr);
#ifndef ONLY_PROGRESS
     for (a : 0 .. N-1) { assert(a==i || trust[a]==0) }     /* P1 */
#endif
     skip
  :: else -> if :: ws[i]!=2 -> ws[i]=1 :: else fi
  fi;
#ifdef WRITES
  wtok[i]=(tm[i] -> rtok : 0);
#endif
  tr=0; a=0;
}
inline recv(i) {
  printf("W%d gets answer %d to kind %d\n",i,qst[i],qk[i]);
  if
  :: qk[i]==ACQ && qst[i]==2 -> granted(i); freeq(i)
  :: qk[i]==ACQ && qst[i]==3 ->
     if
     :: qsv[i] && !obsv[i] -> obsv[i]=1;
#ifdef TWIN_OBSERVE_FROM_REQUEST
        obsage[i]=qage[i];
#else
        obsage[i]=0;
#endif
     :: else
     fi;
     freeq(i)
  :: qk[i]==ACQ && qst[i]==4 -> ws[i]=1; tm[i]=qf[i];
#ifdef WRITES
     wtok[i]=(tm[i] -> rtok : 0);
#endif
     freeq(i)
  :: qk[i]==REN && qst[i]==2 -> granted(i); freeq(i)
  :: qk[i]==REN && qst[i]==3 -> trust[i]=0; ws[i]=0; freeq(i); dropnonce(i)   /* 0 rows is final */
  fi
}
#ifdef CALM
#define ME0 (!calm || (i==0 && ws[0]!=2))
#define MAYPOLL (!calm || !polled)
#define MAYTICK (!calm || (ws[0]==0 && qst[0]==0 && polled))
#else
#define ME0 true
#define MAYPOLL true
#define MAYTICK true
#endif

#ifdef NOGHOST  /* only releases and writes are ghosts; what is given up is lost */
#define GHOSTS false
#else
#define GHOSTS true
#endif
proctype W(byte i) {
end:
  do
  /* acquire, again with the same holder value as long as it is not given up */
  :: d_step { ME0 && ws[i]==0 && qst[i]==0 && MAYPOLL ->
       printf("W%d sends acquire (observed still equal=%d, age %d)\n",i,obsv[i],obsage[i]); qk[i]=ACQ; qst[i]=1; qage[i]=0; qf[i]=obsv[i];
       qmay[i]=(obsv[i] && obsage[i]>=OBSERVE -> (obsage[i]>=OMAX -> 2 : 1) : 0);
#ifdef CALM
       if :: calm -> polled=1 :: else fi
#endif
       ; RST
     }
  /* renew, or renew first */
  :: d_step { ME0 && ws[i]!=0 && qst[i]==0
     ->  printf("W%d sends renew\n",i); qk[i]=REN; qst[i]=1; qage[i]=0; qf[i]=tm[i]; RST }
  /* the server executes it */
#ifdef ANYCLOCK
  :: d_step { qst[i]==1
     ->  execq(i,1); RST }
  :: d_step { qst[i]==1
     ->  execq(i,0); RST }
#else
  :: d_step { ME0 && qst[i]==1
     ->  execq(i,(exp<=0)); RST }
#endif
  :: d_step { ME0 && qst[i]>=2
     ->  recv(i); RST }
  /* give up waiting: the request becomes a ghost, or is lost, or its answer is */
  :: d_step { NOTCALM && qst[i]==1 && gk[0]==0 && GHOSTS
     ->  printf("W%d times out, its request kind %d is a ghost\n",i,qk[i]); addg(qk[i],i+1,qf[i],qmay[i],0); freeq(i); gc(); RST }
  :: d_step { NOTCALM && qst[i]!=0
     ->  freeq(i); RST }
  /* an acquire that gives up: best-effort release, new holder value */
  :: d_step { NOTCALM && ws[i]==0 && qst[i]==0 && gk[0]==0 && GHOSTS
     ->  printf("W%d gives up, sends best-effort release\n",i); addg(RELN,i+1,0,0,0);
#ifndef TWIN_REUSE_HOLDER
       dropnonce(i);
#endif
       skip
       ; RST
     }
  :: d_step { NOTCALM && ws[i]==0 && qst[i]==0
     ->  dropnonce(i); RST }
  /* release: work has ended before it is sent */
  :: d_step { NOTCALM && ws[i]!=0 && qst[i]==0 && gk[0]==0
     ->  printf("W%d ends work, sends release\n",i); trust[i]=0; ws[i]=0; addg(REL,i+1,tm[i],0,0); dropnonce(i); gc(); RST }
  /* or sends none, and lets it expire */
  :: d_step { (ws[i]==1 || ws[i]==3) && qst[i]==0 && (ws[i]==3 || NOTCALM)
     ->  ws[i]=0; dropnonce(i); RST }
  /* crash; it may come back with a new holder value and without memory */
  :: d_step { NOTCALM && gk[0]==0 && GHOSTS && qst[i]==1
     ->  addg(qk[i],i+1,qf[i],qmay[i],0); freeq(i); trust[i]=0; ws[i]=0; obsv[i]=0; obsage[i]=0; dropnonce(i); gc(); RST }
  :: d_step { NOTCALM && (ws[i]!=0 || qst[i]!=0 || obsv[i])
     ->  freeq(i); trust[i]=0; ws[i]=0; obsv[i]=0; obsage[i]=0; dropnonce(i); RST }
#ifdef WRITES
  /* decided while trusted; done at any later time */
  :: d_step { ws[i]==2 && gk[0]==0
     ->  addg(WR,i+1,tm[i],0,wtok[i]); RST }
#ifdef LIMIT_UNGUARDED
  :: d_step { ws[i]==2 && gk[0]==0
     ->  addg(DDL,i+1,0,i,0); RST }
#endif
#endif
  od
}
proctype Gh(byte g) {
end:
  do
#ifdef ANYCLOCK
  :: d_step { gk[g]!=0
     ->  execg(g,1); RST }
  :: d_step { gk[g]==ACQ
     ->  execg(g,0); RST }
#else
  :: d_step { gk[g]!=0
     ->  execg(g,(exp<=0)); RST }
#endif
  :: d_step { gk[g]!=0
     ->  clr(g); sort(); gc(); RST }
  od
}
inline tick() {
  printf("TICK\n");
  for (a : 0 .. N-1) {
    if :: trust[a]>0 -> trust[a]--; if :: trust[a]==0 -> ws[a]=3 :: else fi :: else fi;
    if :: qst[a]!=0 && qage[a]<TRUST -> qage[a]++ :: else fi;
    if :: obsv[a] && obsage[a]<OMAX -> obsage[a]++ :: else fi
  }
#ifdef CALM
  if :: calm -> polled=0; since++; assert(since<=BOUND) :: else fi;
#endif
  a=0;
}

proctype Clock() {
end:
  do
  :: d_step { MAYTICK
     ->  tick();
#ifndef ANYCLOCK
#ifdef STILLCALM
       if :: !calm -> srv(1) :: else fi
#else
       srv(1)
#endif
#endif
       ; RST
     }
#if JUMPS>0
  :: d_step { NOTCALM && jumps<JUMPS
     ->  jumps++; srv(JA); RST }
  :: d_step { NOTCALM && jumps<JUMPS
     ->  jumps++; srv(-JA); RST }
  :: d_step { NOTCALM && jumps<JUMPS
     ->  jumps++; srv(JB); RST }
  :: d_step { NOTCALM && jumps<JUMPS
     ->  jumps++; srv(-JB); RST }
#endif
#ifdef FORCE
  /* force release by somebody who has just read the token */
  :: d_step { NOTCALM && rh!=0 && TOKLEFT && FORCELEFT ->
       printf("FORCE RELEASE\n"); changed(); newterm();
#ifdef TWIN_FORCE_FREES
       rh=0;
#ifndef ANYCLOCK
       nb=exp; exp=PAST; sat();
#endif
#else
       rh=REVOKED;
#endif
#ifdef MAXFORCE
       forces++;
#endif
       gc(); a=0; b=0; x=0; RST }
#endif
#ifdef CALM
  /* from here on: everybody but worker 0 is dead, the network works, the clock runs; worker 0 polls each tick */
  :: d_step { !calm
     ->  printf("CALM\n"); calm=1; since=0; polled=0;
       a=1; do :: a<N -> freeq(a); trust[a]=0; ws[a]=0; obsv[a]=0; obsage[a]=0; ok=a; dropnonce(ok); a=ok+1 :: else -> break od;
       a=0; ok=0; RST }
  :: timeout -> assert(!calm || ws[0]==2)
#endif
  od
}
init {
  atomic {
#ifdef ANYCLOCK
    skip;
#else
    nb=PAST; aqd=0; exp=PAST;
#endif
    byte k=0;
    do :: k<N -> run W(k); k++ :: else -> break od;
    k=0;
    do :: k<G -> run Gh(k); k++ :: else -> break od;
    k=0;
    run Clock()
  }
}
